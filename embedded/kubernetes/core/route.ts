/** Routes a request to its handler by method and path. */
import { authorize, authorizePath, isAuthorized } from '../access/authorize.ts'
import { requestToken, review } from '../access/reviews.ts'
import { type Definition, subresourcesOf, supportedVerbs } from './definition.ts'
import { discovery } from './discovery.ts'
import type { Answer, Engine } from './engine.ts'
import type { User } from './object.ts'
import { get, listOrWatch, type ReadTarget } from './read.ts'
import { remove, removeCollection } from './remove.ts'
import { parseResourcePath, type Query, queryOf, type Request } from './request.ts'
import { badRequest, methodNotAllowed, noSuchResource, notFound, NoSuchPath, notSupported } from './status.ts'
import { patch } from './patch.ts'
import { create, replace } from './write.ts'

export async function route(engine: Engine, request: Request, user: User): Promise<Answer> {
  const cut = request.path.indexOf('?')
  const path = cut < 0 ? request.path : request.path.slice(0, cut)
  const query = queryOf(request.path)
  const named = parseResourcePath(path)
  if (!named) {
    authorizePath(engine, user, request, path)
    const found = discovery(engine, request, path)
    if (!found) throw new NoSuchPath()
    return found
  }
  const definition = engine.registry.find(named.group, named.version, named.resource)
  if (!definition || (named.namespace !== '' && !definition.isNamespaced)) {
    if (named.group === '' && named.version === 'v1') throw noSuchResource()
    throw new NoSuchPath()
  }
  const target: ReadTarget = {
    definition,
    namespace: named.namespace,
    name: named.name,
    subresource: named.subresource,
  }
  authorize(engine, user, request, query, target)
  checkSubresource(definition, target)
  const answer = await handle(engine, request, query, target, user)
  return definition.deprecation === undefined
    ? answer
    : {
        ...answer,
        headers: {
          ...answer.headers,
          warning: [answer.headers.warning, `299 - ${JSON.stringify(definition.deprecation)}`]
            .filter((text) => text !== undefined)
            .join(', '),
        },
      }
}

function checkSubresource(definition: Definition, { name, subresource }: ReadTarget): void {
  if (subresource === '' || subresourcesOf(definition).includes(subresource)) return
  throw definition.isCustom ? notFound(definition, name) : noSuchResource()
}

async function handle(engine: Engine, request: Request, query: Query, target: ReadTarget, user: User): Promise<Answer> {
  const { definition, name, namespace, subresource } = target
  const write = { target, request, query, user }
  if (name !== '' && definition.isNamespaced && namespace === '') throw new NoSuchPath()
  switch (request.method) {
    case 'GET':
      if (definition.storing === 'review') throw methodNotAllowed()
      return name === ''
        ? listOrWatch(engine, target, request, query, () => isAuthorized(engine, user, request, query, target))
        : get(engine, target, request, query)
    case 'POST':
      if (subresource === 'token') return requestToken(engine, write)
      if (definition.storing === 'review') return review(engine, write)
      if (subresource !== '') throw notSupported('create', definition)
      if (name !== '' && !definition.isCustom) throw methodNotAllowed()
      if (definition.isNamespaced && namespace === '' && definition.isCustom) throw new NoSuchPath()
      if (definition.isNamespaced && namespace === '')
        throw badRequest('an empty namespace may not be set during creation')
      return create(engine, write)
    case 'PUT':
      if (!supportedVerbs(definition).includes('update') || (name === '' && !definition.isCustom))
        throw methodNotAllowed()
      if (name === '') throw badRequest('name must be provided')
      return replace(engine, write)
    case 'PATCH':
      if (name === '' || !supportedVerbs(definition).includes('patch')) throw methodNotAllowed()
      return patch(engine, write)
    case 'DELETE':
      if (subresource !== '') throw notSupported('delete', definition)
      if (!supportedVerbs(definition).includes('delete')) throw methodNotAllowed()
      return name === '' ? removeCollection(engine, write) : remove(engine, write)
    default:
      throw methodNotAllowed()
  }
}
