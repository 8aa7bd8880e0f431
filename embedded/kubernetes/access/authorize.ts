/** Refuses requests that the user has no right to make. */
import type { Engine } from '../core/engine.ts'
import type { User } from '../core/object.ts'
import type { ReadTarget } from '../core/read.ts'
import { isTrue, type Query, type Request } from '../core/request.ts'
import { parseFieldSelector } from '../core/selector.ts'
import { forbidden, Refusal } from '../core/status.ts'
import type { Attributes } from './rbac.ts'

function verbOf(method: Request['method'], name: string, query: Query): string {
  if (method === 'GET') return name !== '' ? 'get' : isTrue(query, 'watch') ? 'watch' : 'list'
  if (method === 'DELETE') return name === '' ? 'deletecollection' : 'delete'
  return { POST: 'create', PUT: 'update', PATCH: 'patch' }[method]
}

/** Throws 403 with the message of Kubernetes. */
export function authorize(engine: Engine, user: User, request: Request, query: Query, target: ReadTarget): void {
  const { name } = target
  const verb = verbOf(request.method, name, query)
  requireVerb(engine, user, verb, target, name === '' && request.method === 'GET' ? selectedName(query) : name)
}

/** The same check as a result. */
export function isAuthorized(engine: Engine, user: User, request: Request, query: Query, target: ReadTarget): boolean {
  try {
    authorize(engine, user, request, query, target)
    return true
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

/** Throws 403 unless the user may create the target: for writes that create a missing object. */
export const authorizeCreate = (engine: Engine, user: User, target: ReadTarget): void =>
  requireVerb(engine, user, 'create', target, target.name)

function requireVerb(engine: Engine, user: User, verb: string, target: ReadTarget, objectName: string): void {
  const { definition, namespace, name, subresource } = target
  const attributes: Attributes = {
    verb,
    group: definition.group,
    resource: definition.resource + (subresource === '' ? '' : `/${subresource}`),
    namespace: definition.storageKey === '/namespaces' ? name : namespace,
    name: objectName,
  }
  if (!engine.authorizer.allows(user, attributes))
    throw forbidden(
      definition,
      name,
      refusal(user, attributes, definition.isNamespaced && namespace !== '' ? namespace : ''),
    )
}

/** A role that names an object covers a list or watch of this single object. As in Kubernetes, it never covers creation
 *  or deletion of collections. */
const selectedName = (query: Query): string =>
  parseFieldSelector(query.get('fieldSelector') ?? undefined).find(
    ({ field, isNegated }) => field === 'metadata.name' && !isNegated,
  )?.value ?? ''

export const refusal = ({ name }: User, { verb, resource, group }: Attributes, namespace: string): string =>
  `User ${JSON.stringify(name)} cannot ${verb} resource ${JSON.stringify(resource)} in API group ` +
  `${JSON.stringify(group)} ` +
  `${namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`}`

/** For paths that are not resources. */
export function authorizePath(engine: Engine, user: User, request: Request, path: string): void {
  const verb = request.method.toLowerCase()
  if (engine.authorizer.allows(user, { verb, path, group: '', resource: '', namespace: '', name: '' })) return
  throw new Refusal(
    403,
    'Forbidden',
    `forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}`,
    {},
  )
}
