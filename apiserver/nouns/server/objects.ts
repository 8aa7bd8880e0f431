/** Servers for requests, with what their view shows in addition. */
import type { ServerFacts } from '../../../domain/server/rules.ts'
import { isHiddenMachineId, requireOwnMachine } from '../../../domain/managed-machine/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Node } from '../../../resources/node/index.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import {
  factsOf,
  Server,
  type ServerSpec,
  type ServerStatus,
  type ServerSurroundings,
  type ServerView,
  toServerView,
} from '../../../resources/server/index.ts'
import { type OperatedObjects, openOperated, type Verb } from '../../kit/change/operate.ts'
import { keysOf, type Source, sourceOf, zonesOf } from '../../kit/feed.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>
export type Servers = OperatedObjects<ServerSpec, ServerStatus, ServerView, ServerFacts>
export type ServerVerb<Claims = void> = Verb<ServerObject, ServerFacts, Claims>

const SERVERS_ON = 'servers on a host'
const SERVERS_FROM = 'servers from an image'

const ZONE_UNKNOWN = 'The zone is not known yet.'

export function openServers(parts: ObjectParts): Servers {
  const { caches } = parts
  const [plans, zones, templates, nodes] = [caches.of(Plan), caches.of(Zone), caches.of(Template), caches.of(Node)]
  const images = caches.of(CustomImage)
  const cache = caches.of(Server)
  cache.addIndex(SERVERS_ON, ({ status }) => (status?.nodeName === undefined ? [] : [status.nodeName]))
  cache.addIndex(SERVERS_FROM, ({ metadata: { namespace }, spec: { customImageId } }) =>
    customImageId === undefined ? [] : [`${namespace}/${customImageId}`],
  )
  /** Of the system that it boots, also when that came from an image of the account. */
  const templateOf = ({ metadata: { namespace = '' }, spec: { template, customImageId } }: ServerObject) => {
    const image = customImageId === undefined ? undefined : images.get({ namespace, name: customImageId })
    const name = template ?? image?.status?.origin?.name
    return name === undefined ? undefined : templates.get({ name })?.spec
  }
  const surroundingsOf = (server: ServerObject): ServerSurroundings => {
    const { spec, status } = server
    const zone = zones.get({ name: spec.zone })
    return {
      plan: plans.get({ name: spec.plan })?.spec,
      zone: zone?.spec,
      loopbackTwins: parts.loopbackTwins,
      haObstacle: zone?.status === undefined ? ZONE_UNKNOWN : zone.status.haObstacle,
      template: templateOf(server),
      work: status?.nodeName === undefined ? undefined : nodes.get({ name: status.nodeName })?.status?.plannedWork,
    }
  }
  return openOperated(parts, {
    name: 'server',
    title: 'server',
    resource: Server,
    surroundingsOf,
    toView: toServerView,
    factsOf,
    labelsOf: ({ labels }) => labels,
    isHidden: isHiddenMachineId,
    requireOwn: ({ spec: { managedBy } }) => requireOwnMachine(managedBy, 'other'),
    fields: { hostname: ({ hostname }) => hostname },
  })
}

/** What the view shows besides the server: as `surroundingsOf` reads it. */
export const sourcesOfServers = (caches: Caches, { cache }: Servers): readonly Source[] => [
  sourceOf(caches.of(Plan), () => 'all', { part: ({ spec }) => spec }),
  sourceOf(caches.of(Template), () => 'all', { part: ({ spec }) => spec }),
  zonesOf(caches, ({ spec, status }) => [spec, status?.haObstacle]),
  sourceOf(caches.of(Node), ({ metadata: { name } }) => keysOf(cache.by(SERVERS_ON, name)), {
    part: ({ status }) => status?.plannedWork,
  }),
  sourceOf(
    caches.of(CustomImage),
    ({ metadata: { namespace, name } }) => keysOf(cache.by(SERVERS_FROM, `${namespace}/${name}`)),
    { part: ({ status }) => status?.origin?.name },
  ),
]
