/** Quotas of an account. */
import { listQuotas } from '../../db/account/index.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { listAccountQuotas } from '../../resources/quota/index.ts'
import { completeList } from '../list/page.ts'
import type { Parts } from '../parts.ts'

export const quotaEndpoints = ({ db }: Pick<Parts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(listAccountQuotas, async ({ caller }) => {
    const quotas = await listQuotas(db, caller.accountId)
    return completeList(quotas.map(({ name, limit, used }) => ({ name, limit, used, scope: 'account' })))
  }),
]
