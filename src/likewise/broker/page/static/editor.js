// An editor for subscriptions: a plain text area with coloured text behind it, so that it works with every keyboard and
// screen reader. Suggestions are in a list below it, then errors with a caret.
const WORDS = ["then", "and", "or", "xor", "not", "for", "within", "where", "as", "consume", "unique", "all", "pairs",
  "threshold", "approach", "in", "every", "at", "before", "after", "during", "overlaps", "meets", "minutes", "seconds"];
const PART = /("(?:[^"\\]|\\.)*"?)|(#[^\n]*)|(~)|(!=|<=|>=|[=<>])|(\b\d+(?:\.\d+)?\b)|([A-Za-z_][\w-]*)|([{}(),:;\[\]])/g;

export default {
  props: { modelValue: String, label: String, attributes: Array, values: Object, error: Object },
  data: () => ({ text: "", choices: [], chosen: -1, sent: null }),
  template: `
    <div class="editor">
      <div class="editor-body">
        <pre class="editor-back" aria-hidden="true" ref="back"><code><span v-for="(part, at) in parts" :key="at"
          :class="part[0]">{{ part[1] }}</span>{{ '\\n' }}</code></pre>
        <textarea ref="area" v-model="text" :aria-label="label" spellcheck="false" autocapitalize="off" autocomplete="off"
          rows="5" role="combobox" aria-autocomplete="list" :aria-expanded="choices.length > 0" aria-controls="editor-choices"
          :aria-activedescendant="chosen >= 0 ? 'choice-' + chosen : null" :aria-invalid="!!error"
          aria-describedby="editor-error" @input="typed" @keydown="key" @scroll="scroll" @blur="later"></textarea>
      </div>
      <ul id="editor-choices" class="choices" role="listbox" aria-label="Suggestions" :hidden="!choices.length">
        <li v-for="(choice, at) in choices" :key="choice.text" :id="'choice-' + at" role="option" :aria-selected="at === chosen"
            @mousedown.prevent="take(choice)"><b>{{ choice.text }}</b> <span class="name">{{ choice.what }}</span></li>
      </ul>
      <div id="editor-error" class="editor-error" role="status">
        <template v-if="error"><pre v-if="error.line" class="caret-line">{{ error.line }}
{{ ' '.repeat(Math.max(0, error.column - 1)) }}^</pre><span>{{ error.message }}</span>
        <span v-if="error.hint" class="hint"> {{ error.hint }}</span></template>
      </div>
    </div>`,
  mounted() {
    this.text = this.modelValue || "";
  },
  watch: {
    modelValue(value) {
      if (value !== this.sent && value !== this.text) this.text = value || "";
    },
  },
  computed: {
    parts() {
      const out = [];
      let last = 0;
      for (const found of this.text.matchAll(PART)) {
        if (found.index > last) out.push(["", this.text.slice(last, found.index)]);
        const kind = found[1] ? "quoted" : found[2] ? "comment" : found[3] ? "about" : found[4] ? "sign"
          : found[5] ? "number" : found[6] ? (WORDS.includes(found[6]) ? "keyword" : "") : "bracket";
        out.push([kind, found[0]]);
        last = found.index + found[0].length;
      }
      out.push(["", this.text.slice(last)]);
      return out;
    },
  },
  methods: {
    typed() {
      clearTimeout(this.timer);
      this.timer = setTimeout(this.send, 200);
      this.suggest();
    },
    send() {
      this.sent = this.text;
      this.$emit("update:modelValue", this.text);
    },
    scroll() {
      this.$refs.back.scrollTop = this.$refs.area.scrollTop;
      this.$refs.back.scrollLeft = this.$refs.area.scrollLeft;
    },
    suggest() {
      const area = this.$refs.area, before = this.text.slice(0, area.selectionStart);
      const open = before.lastIndexOf("{"), shut = before.lastIndexOf("}");
      this.chosen = -1;
      if (open < 0 || open < shut) {
        const word = (before.match(/[\w-]+$/) || [""])[0];
        this.choices = word.length < 2 || open < 0 ? [] : WORDS.filter((one) => one.startsWith(word) && one !== word)
          .slice(0, 5).map((one) => ({ text: one, what: "keyword", from: word.length }));
        return;
      }
      const here = before.slice(Math.max(open, before.lastIndexOf(",")) + 1).trimStart();
      const split = here.match(/^(.*?)(~?)\s*(=|!=|<=|>=|<|>)\s*(.*)$/);
      if (!split) {
        this.choices = this.near(this.attributes || [], here.replace(/~$/, ""), "attribute");
        if (here && !here.endsWith("~") && (this.attributes || []).includes(here.trim()))
          this.choices.unshift({ text: here.trim() + "~", what: "~ also matches words with the same meaning", from: here.length });
      } else {
        const known = (this.values || {})[split[1].trim()] || [];
        const word = split[4].replace(/~$/, "");
        this.choices = this.near(known, word, "value of " + split[1].trim());
        if (word && !split[4].endsWith("~") && known.includes(word.trim()))
          this.choices.unshift({ text: word.trim() + "~", what: "~ also matches words with the same meaning", from: split[4].length });
      }
    },
    near(all, typed, what) {
      const wanted = typed.trim().toLowerCase();
      return all.filter((one) => one.toLowerCase().includes(wanted) && one.toLowerCase() !== wanted)
        .sort((a, b) => b.toLowerCase().startsWith(wanted) - a.toLowerCase().startsWith(wanted))
        .slice(0, 7).map((one) => ({ text: one, what, from: typed.length }));
    },
    take(choice) {
      const area = this.$refs.area, at = area.selectionStart, begin = at - choice.from;
      this.text = this.text.slice(0, begin) + choice.text + this.text.slice(at);
      this.choices = [];
      this.send();
      this.$nextTick(() => {
        area.focus();
        area.selectionStart = area.selectionEnd = begin + choice.text.length;
      });
    },
    later() {
      setTimeout(() => (this.choices = []), 150);
    },
    key(event) {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
        this.send();
        this.$emit("run");
        event.preventDefault();
      } else if (!this.choices.length) return;
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const step = event.key === "ArrowDown" ? 1 : -1, count = this.choices.length;
        this.chosen = (this.chosen + step + count + (this.chosen < 0 && step < 0 ? 1 : 0)) % count;
        event.preventDefault();
      } else if ((event.key === "Enter" || event.key === "Tab") && this.chosen >= 0) {
        this.take(this.choices[this.chosen]);
        event.preventDefault();
      } else if (event.key === "Escape") this.choices = [];
    },
  },
};
