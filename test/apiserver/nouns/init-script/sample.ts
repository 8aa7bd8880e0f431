import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  'init-scripts': async ({ owner }) =>
    (await owner.send('POST', '/v1/init-scripts', { body: { name: 'script', content: '#!/bin/sh' } })).body[
      'init_script'
    ].id,
}
