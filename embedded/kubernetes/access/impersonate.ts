/** Impersonation (`kubectl --as`): the caller needs the right to impersonate the user and each of the groups. */
import { defined } from '../../../domain/defined.ts'
import type { User } from '../core/object.ts'
import { forbidden, unexpected } from '../core/status.ts'
import { refusal } from './authorize.ts'
import type { Attributes, Authorizer } from './rbac.ts'

type Headers = Readonly<Record<string, readonly string[] | undefined>>

/** The user that the headers name, or the caller when they name none. Throws a Refusal without the right. */
export function actingUser(authorizer: Authorizer, user: User, headers: Headers): User {
  const [name, groups = [], uid] = [
    headers['impersonate-user']?.[0],
    headers['impersonate-group'],
    headers['impersonate-uid']?.[0],
  ]
  if (name === undefined && groups.length === 0 && uid === undefined) return user
  if (name === undefined) throw unexpected(`requested ${JSON.stringify(groups)} without impersonating a user`)
  const require = (group: string, resource: string, wanted: string, namespace = '') => {
    const attributes: Attributes = { verb: 'impersonate', group, resource, namespace, name: wanted }
    if (!authorizer.allows(user, attributes))
      throw forbidden({ group, resource }, wanted, refusal(user, attributes, namespace))
  }
  const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name) ?? []
  if (namespace === undefined || account === undefined) require('', 'users', name)
  else require('', 'serviceaccounts', account, namespace)
  for (const group of groups) require('', 'groups', group)
  if (uid !== undefined) require('authentication.k8s.io', 'uids', uid)
  const own =
    groups.length > 0 || namespace === undefined
      ? groups
      : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
  return {
    name,
    ...defined({ uid }),
    groups: [...new Set([...own, ...(name === 'system:anonymous' ? [] : ['system:authenticated'])])],
  }
}
