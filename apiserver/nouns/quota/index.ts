/** Quotas of an account. */
import type { z } from 'zod'
import { listQuotas } from '../../../db/account/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { objectStorageUsedGibibytes } from '../../../db/object-storage/index.ts'
import { ZONE_QUOTA } from '../../../domain/account/quota.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { listAccountQuotas, type Quota } from '../../../resources/quota/index.ts'
import { completeList } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

const quotaEndpoints = ({ db }: Pick<Parts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(listAccountQuotas, async ({ caller }) => completeList(await readQuotas(db, caller.accountId))),
]

/** All enforced quotas. For a quota that counts per zone, `used` is the value of the fullest zone. */
export async function readQuotas(queries: Queries, accountId: string): Promise<readonly z.infer<typeof Quota>[]> {
  const quotas = await listQuotas(queries, accountId)
  const inFullestZone = await objectStorageUsedGibibytes(queries, accountId)
  return quotas.map(({ name, limit, used }) =>
    name === ZONE_QUOTA ? { name, limit, used: inFullestZone, scope: 'zone' } : { name, limit, used, scope: 'account' },
  )
}

export const quota = noun<Pick<Parts, 'db'>>({ name: 'quota', endpoints: quotaEndpoints })
