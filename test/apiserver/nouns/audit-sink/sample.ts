import type { Samples } from '../../samples.ts'

const body = { name: 'sink', type: 'https', url: 'https://collector.example.com/' }

export const SAMPLES: Samples = {
  'audit-sinks': async ({ owner }) =>
    (await owner.send('POST', '/v1/account/audit-sinks', { body })).body['audit_sink'].id,
}
