// The shape of the last minutes, one bar for each few seconds.
export default {
  data: () => ({ bars: [] }),
  template: `<div class="spark" aria-hidden="true"><i v-for="(bar, at) in bars" :key="at" :style="{ height: bar + '%' }"></i></div>`,
  methods: {
    draw(bars) {
      this.bars = bars;
    },
  },
};
