import { linkIdentity } from '../../../../db/identity/index.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { Samples } from '../../samples.ts'

export const SAMPLES: Samples = {
  async identities({ owner, cloud }) {
    const id = newUuid(systemRandom)
    await linkIdentity(cloud.db, {
      id,
      userId: owner.userId,
      issuer: 'https://issuer.example.com',
      subject: 'owner',
      provider: 'example',
      now: new Date(),
    })
    return id
  },
}
