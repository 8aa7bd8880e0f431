/** Templates for simulated guests, which load nothing: all are ready. */
import type { ImageState, TemplateStore } from './template-store.ts'

export function simulatedTemplates(): TemplateStore {
  const ready = (name: string): ImageState => ({
    is: 'ready',
    image: {
      name,
      version: 'simulated',
      boot: { kernel: '/simulated/vmlinuz', initialRamdisk: '/simulated/initrd', commandLine: '' },
    },
  })
  return {
    newest: async (name) => ready(name),
    version: async (name) => ready(name),
    built: async () => ['debian-13', 'managed-machine', 'tiny-linux'],
    prepare() {},
    onChange: () => () => {},
  }
}
