import type { Samples } from '../../samples.ts'

export const ASKED = { vcpus: 16, memory_gibibytes: 64, disk_gigabytes: 500 }

export const SAMPLES: Samples = {
  requests: async ({ owner }) =>
    (await owner.send('POST', '/v1/private-cloud/requests', { body: ASKED })).body['request'].id,
}
