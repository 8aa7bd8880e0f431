/** Quotas of an account. */
import { backupQuota, customImageQuota, serverQuota, snapshotQuota, storageQuota } from '../../domain/quota.ts'
import { listQuotas } from '../../db/account/index.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { ROUTES } from '../../resources/index.ts'
import { listAccountQuotas } from '../../resources/quota/index.ts'
import { completeList } from '../list/page.ts'
import type { Parts } from '../parts.ts'

/** Quotas are opened for nouns before those are offered: shown are those that something can take from. */
const LISTED: ReadonlySet<string> = new Set([
  ...[serverQuota({ cores: 0, memoryMebibytes: 0 }), storageQuota(0), snapshotQuota(0)].flatMap(Object.keys),
  ...[backupQuota(0), customImageQuota(0)].flatMap(Object.keys),
  ...ROUTES.filter(({ method, audience }) => method === 'POST' && audience === 'customer').map(({ path }) =>
    path.replace('/v1/', '').replaceAll('-', '_'),
  ),
])

export const quotaEndpoints = ({ db }: Pick<Parts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(listAccountQuotas, async ({ caller }) => {
    const quotas = await listQuotas(db, caller.accountId)
    return completeList(
      quotas
        .filter(({ name }) => LISTED.has(name))
        .map(({ name, limit, used }) => ({ name, limit, used, scope: 'account' })),
    )
  }),
]
