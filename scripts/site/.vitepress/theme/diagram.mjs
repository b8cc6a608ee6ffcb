import { useData } from 'vitepress';
import { defineComponent, h, onMounted, ref, useId, watch } from 'vue';

/** Draws a text of Mermaid, encoded for a URL, and again when the reader changes between light and dark. */
export const Diagram = defineComponent({
  props: { text: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const text = decodeURIComponent(props.text);
    const id = `diagram-${useId()}`;
    const svg = ref('');
    const draw = async () => {
      const { default: mermaid } = await import('mermaid');
      // In its own size: a narrow page scrolls it, because its text would be too small to read.
      const size = { useMaxWidth: false };
      const theme = isDark.value ? 'dark' : 'neutral';
      mermaid.initialize({ startOnLoad: false, theme, flowchart: size, sequence: size });
      ({ svg: svg.value } = await mermaid.render(id, text));
    };
    onMounted(() => watch(isDark, draw, { immediate: true }));
    return () => (svg.value === '' ? h('pre', text) : h('div', { class: 'diagram', innerHTML: svg.value }));
  },
});
