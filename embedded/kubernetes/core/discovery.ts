/** Discovery: versions, health, which resources exist, and their schemas. */
import { createHash } from 'node:crypto'
import { negotiate } from './accept.ts'
import { groupVersionOf, subresourcesOf, supportedVerbs, type Definition } from './definition.ts'
import { json, type Answer, type Engine } from './engine.ts'
import type { Json, JsonObject } from './json.ts'
import { openApi } from './openapi.ts'
import type { Request } from './request.ts'
import { methodNotAllowed } from './status.ts'

/** The Kubernetes version whose behaviour this server follows. */
export const KUBERNETES_VERSION = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.3+svccloud',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'node',
  platform: 'linux/amd64',
}

const HEALTH = new Set(['/livez', '/readyz', '/healthz', '/livez/ping', '/readyz/ping', '/healthz/ping'])

/** Undefined for other paths. Paths below /api are answered in JSON, all others as text. */
export function discovery(engine: Engine, request: Request, path: string): Answer | undefined {
  const bare = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const answer = find(engine, request, bare)
  if (answer && request.method !== 'GET') throw methodNotAllowed()
  return answer
}

function find(engine: Engine, request: Request, path: string): Answer | undefined {
  if (HEALTH.has(path)) return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'ok' }
  if (path === '/version') return json(200, JSON.stringify(KUBERNETES_VERSION))
  if (path === '/api') return root(engine, request, true)
  if (path === '/apis') return root(engine, request, false)
  if (path === '/' || path === '') return json(200, JSON.stringify({ paths: pathsOf(engine) }))
  if (path === '/openapi/v2' || path === '/openapi/v3' || path.startsWith('/openapi/v3/'))
    return openApi(engine, request, path)
  const [kind, first, second, ...more] = path.slice(1).split('/')
  if (more.length > 0 || first === undefined) return undefined
  if (kind === 'api') return second === undefined ? resourceList(engine, '', first) : undefined
  if (kind !== 'apis') return undefined
  return second === undefined ? group(engine, first) : resourceList(engine, first, second)
}

const pathsOf = (engine: Engine): string[] => [
  '/api',
  '/api/v1',
  '/apis',
  ...new Set(
    engine.registry
      .all()
      .filter(({ group }) => group !== '')
      .map((one) => `/apis/${groupVersionOf(one)}`),
  ),
  '/healthz',
  '/livez',
  '/metrics',
  '/openapi/v3',
  '/readyz',
  '/version',
]

/** Versions of each group, in order of preference. */
function groupsOf(engine: Engine): Map<string, Map<string, Definition[]>> {
  const groups = new Map<string, Map<string, Definition[]>>()
  for (const definition of engine.registry.all()) {
    const versions = groups.get(definition.group) ?? new Map<string, Definition[]>()
    groups.set(definition.group, versions)
    versions.set(definition.version, [...(versions.get(definition.version) ?? []), definition])
  }
  for (const [name, versions] of groups)
    groups.set(name, new Map([...versions].sort(([a], [b]) => compareVersions(a, b))))
  return groups
}

/** Stable before beta before alpha, newer before older, all others last. */
export function compareVersions(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
    return found
      ? [found[2] === undefined ? 3 : found[2] === 'beta' ? 2 : 1, Number(found[1]), Number(found[3] ?? 0)]
      : [0, 0, 0]
  }
  const [left, right] = [rank(a), rank(b)]
  const difference = left.map((part, index) => (right[index] ?? 0) - part).find((part) => part !== 0)
  return difference ?? (a < b ? -1 : a > b ? 1 : 0)
}

function root(engine: Engine, request: Request, isCore: boolean): Answer {
  const as = negotiate(request.headers.accept, ['APIGroupDiscoveryList'])
  const groups = [...groupsOf(engine)].filter(([name]) => (name === '') === isCore)
  if (as.as === 'APIGroupDiscoveryList') {
    const version = as.version ?? 'v2'
    const body = JSON.stringify({
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map(([name, versions]) => ({
        metadata: { ...(name === '' ? {} : { name }), creationTimestamp: null },
        versions: [...versions].map(([one, definitions]) => ({
          version: one,
          resources: definitions.map(aggregated),
          freshness: 'Current',
        })),
      })),
    })
    return tagged(request, body, `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  }
  if (isCore)
    return json(200, JSON.stringify({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }))
  return json(
    200,
    JSON.stringify({
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups.map(([name, versions]) => groupOf(name, versions)),
    }),
  )
}

function tagged(request: Request, body: string, contentType: string): Answer {
  const etag = `"${createHash('sha256').update(body).digest('hex').toUpperCase()}"`
  const headers = { etag, vary: 'Accept', 'cache-control': 'public' }
  return request.headers['if-none-match'] === etag
    ? { status: 304, headers, body: '' }
    : { status: 200, headers: { 'content-type': contentType, ...headers }, body }
}

const groupOf = (name: string, versions: ReadonlyMap<string, readonly Definition[]>): JsonObject => {
  const all = [...versions.keys()].map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: all, preferredVersion: all[0] }
}

function group(engine: Engine, name: string): Answer | undefined {
  const versions = name === '' ? undefined : groupsOf(engine).get(name)
  return versions && json(200, JSON.stringify({ kind: 'APIGroup', apiVersion: 'v1', ...groupOf(name, versions) }))
}

const STATUS_VERBS = ['get', 'patch', 'update']
const subresourceVerbs = (subresource: string): readonly string[] =>
  subresource === 'finalize' ? ['update'] : subresource === 'token' ? ['create'] : STATUS_VERBS

interface Kind extends JsonObject {
  readonly group: string
  readonly version: string
  readonly kind: string
}

function subresourceKind(definition: Definition, subresource: string): Kind {
  if (subresource === 'scale') return { group: 'autoscaling', version: 'v1', kind: 'Scale' }
  if (subresource === 'token') return { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }
  return { group: definition.group, version: definition.version, kind: definition.kind }
}

const aggregated = (definition: Definition): JsonObject => {
  const { group, version, kind } = definition
  const subresources = subresourcesOf(definition)
  return {
    resource: definition.resource,
    responseKind: { group, version, kind },
    scope: definition.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: definition.singular,
    verbs: supportedVerbs(definition),
    ...(definition.shortNames.length > 0 ? { shortNames: definition.shortNames } : {}),
    ...(definition.categories.length > 0 ? { categories: definition.categories } : {}),
    ...(subresources.length > 0
      ? {
          subresources: subresources.map((subresource) => ({
            subresource,
            responseKind: subresourceKind(definition, subresource),
            verbs: subresourceVerbs(subresource),
          })),
        }
      : {}),
  }
}

function resourceList(engine: Engine, groupName: string, version: string): Answer | undefined {
  const definitions = engine.registry.all().filter((one) => one.group === groupName && one.version === version)
  if (definitions.length === 0) return undefined
  const resources: Json[] = definitions.flatMap((definition) => [
    {
      name: definition.resource,
      singularName: definition.singular,
      namespaced: definition.isNamespaced,
      kind: definition.kind,
      verbs: supportedVerbs(definition),
      ...(definition.shortNames.length > 0 ? { shortNames: definition.shortNames } : {}),
      ...(definition.categories.length > 0 ? { categories: definition.categories } : {}),
    },
    ...subresourcesOf(definition).map((subresource) => {
      const kind = subresourceKind(definition, subresource)
      const isForeign = kind.group !== definition.group
      return {
        name: `${definition.resource}/${subresource}`,
        singularName: '',
        namespaced: definition.isNamespaced,
        ...(isForeign ? { group: kind.group, version: kind.version } : {}),
        kind: kind.kind,
        verbs: subresourceVerbs(subresource),
      }
    }),
  ])
  return json(
    200,
    JSON.stringify({
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: groupName === '' ? version : `${groupName}/${version}`,
      resources,
    }),
  )
}
