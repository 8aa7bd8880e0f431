import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  templates: async () => 'tiny-linux',
}
