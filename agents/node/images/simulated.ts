/** Templates for simulated guests, which load nothing: all are ready. A host reports these, and those that an operator
 *  has put into its folder. */
import type { ImageState, TemplateStore } from './template-store.ts'

const REPORTED = ['debian-13', 'managed-machine', 'tiny-linux']

export function simulatedTemplates(published: () => Promise<readonly string[]> = async () => []): TemplateStore {
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
    built: async () => [...new Set([...REPORTED, ...(await published())])].toSorted(),
    prepare() {},
    onChange: () => () => {},
  }
}
