// A live list, newest first. It does not change while the user points at it or focuses it.
export default {
  props: { label: String, kind: String, most: { type: Number, default: 60 }, empty: String },
  data: () => ({ rows: [], waiting: [], held: false, judged: {} }),
  template: `
    <div class="feed-box">
      <div class="feed" role="region" :aria-label="label" tabindex="0"
           @mouseenter="hold" @mouseleave="release" @focusin="hold" @focusout="release">
        <p v-if="!rows.length" class="hint">{{ empty }}</p>
        <ul v-else>
          <li v-for="row in rows" :key="row.key" :class="['feed-row', kind]">
            <template v-if="kind === 'event'">
              <span class="when">{{ row.when }}</span>
              <span class="pairs"><span v-for="(pair, at) in row.pairs" :key="at" class="pair"
                ><span class="name">{{ pair[0] }}</span> {{ pair[1] }}</span></span>
              <a class="quiet" :href="'/why?event=' + encodeURIComponent(row.id)" :aria-label="'Subscriptions for ' + row.id">matches?</a>
            </template>
            <template v-else>
              <div class="match-head">
                <a class="match-name" :href="'/why?id=' + row.key">{{ row.name }}</a>
                <span class="score" :title="row.percent"><span class="meter" aria-hidden="true"
                  ><i :style="{ width: 100 * row.score + '%' }"></i></span>{{ row.word }}</span>
                <span class="when">{{ row.when }}</span>
                <span v-if="row.judge" class="thumbs">
                  <button type="button" :aria-pressed="judged[row.key] === true" :aria-label="'Right: ' + row.name + ' at ' + row.when"
                          title="This is right" @click="judge(row, true)"><i class="material-icons" aria-hidden="true">thumb_up</i></button>
                  <button type="button" :aria-pressed="judged[row.key] === false" :aria-label="'Wrong: ' + row.name + ' at ' + row.when"
                          title="This is wrong" @click="judge(row, false)"><i class="material-icons" aria-hidden="true">thumb_down</i></button>
                </span>
              </div>
              <div class="reason">{{ row.reason }}</div>
              <div class="pairs"><span v-for="(pair, at) in row.pairs" :key="at" class="pair"
                ><span class="name">{{ pair[0] }}</span> {{ pair[1] }}</span></div>
            </template>
          </li>
        </ul>
      </div>
      <div class="held" aria-hidden="true">{{ held && waiting.length ? waiting.length + ' more waiting' : '' }}</div>
    </div>`,
  methods: {
    add(rows) {
      if (this.held) this.waiting = [...rows, ...this.waiting].slice(0, this.most);
      else this.rows = [...rows, ...this.rows].slice(0, this.most);
    },
    put(rows) {
      this.waiting = [];
      this.rows = rows.slice(0, this.most);
    },
    hold() {
      this.held = true;
    },
    release(event) {
      const box = event.currentTarget;
      if (event.type === "focusout" && box.contains(event.relatedTarget)) return;
      if (event.type === "mouseleave" && box.contains(document.activeElement) && document.activeElement !== box) return;
      this.held = false;
      const waiting = this.waiting;
      this.waiting = [];
      if (waiting.length) this.add(waiting);
    },
    judge(row, right) {
      this.judged[row.key] = right;
      this.$emit("judge", { key: row.key, right });
    },
  },
};
