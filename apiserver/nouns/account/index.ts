/** The account of the caller. */
import { findAccountName } from '../../../db/account/index.ts'
import { unauthenticated } from '../../../domain/problem.ts'
import type { Answer, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { getAccount } from '../../../resources/account/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { noun } from '../../kit/noun.ts'

const accountEndpoints = ({ db }: Pick<IdentityParts, 'db'>): readonly Endpoint[] => [
  customerEndpoint(getAccount, ({ caller }) => read(db, caller)),
]

async function read(db: IdentityParts['db'], caller: Customer): Promise<Answer> {
  const { accountId, userId, email, role, permissions, token } = caller
  const name = await findAccountName(db, accountId)
  if (name === undefined) throw unauthenticated()
  return {
    status: 200,
    body: {
      account: {
        id: accountId,
        name,
        namespace: accountNamespace(accountId),
        user_id: userId,
        email,
        role,
        permissions,
        token: token === undefined ? null : { id: token.id, name: token.name },
      },
    },
  }
}

export const account = noun<Pick<IdentityParts, 'db'>>({ name: 'account', endpoints: accountEndpoints })
