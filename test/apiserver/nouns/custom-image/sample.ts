import { createCustomImage } from '../../../../resources/custom-image/index.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async 'custom-images'({ owner, cloud }) {
    const body = { ...createCustomImage.example, zone: cloud.zone }
    return (await owner.send('POST', '/v1/custom-images', { body })).body['custom_image'].id
  },
}
