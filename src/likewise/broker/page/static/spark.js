// A bar chart of the last minutes, one bar per time bucket.
export default {
  data: () => ({ bars: [] }),
  template: `<div class="spark" aria-hidden="true"><i v-for="(bar, at) in bars" :key="at" :style="{ height: bar + '%' }"></i></div>`,
  methods: {
    draw(bars) {
      this.bars = bars;
    },
  },
};
