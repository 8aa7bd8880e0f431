/** Quotas of an account. */
import { listQuotas } from '../../../db/account/index.ts'
import { objectStorageUsedGibibytes } from '../../../db/object-storage/index.ts'
import { ZONE_QUOTA } from '../../../domain/account/quota.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { listAccountQuotas } from '../../../resources/quota/index.ts'
import { completeList } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

/** All enforced quotas. For a quota that counts per zone, `used` is the value of the fullest zone. */
const quotaEndpoints = ({ db }: Pick<Parts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(listAccountQuotas, async ({ caller }) => {
    const quotas = await listQuotas(db, caller.accountId)
    const inFullestZone = await objectStorageUsedGibibytes(db, caller.accountId)
    return completeList(
      quotas.map(({ name, limit, used }) =>
        name === ZONE_QUOTA
          ? { name, limit, used: inFullestZone, scope: 'zone' }
          : { name, limit, used, scope: 'account' },
      ),
    )
  }),
]

export const quota = noun<Pick<Parts, 'db'>>({ name: 'quota', endpoints: quotaEndpoints })
