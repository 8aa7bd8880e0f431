/** Servers as requests find them, with what their view shows besides them. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import {
  Server,
  type ServerSpec,
  type ServerStatus,
  type ServerSurroundings,
  type ServerView,
  toServerView,
} from '../../resources/server/index.ts'
import type { Parts } from '../parts.ts'
import { type Objects, openObjects } from '../plain/objects.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>
export type Servers = Objects<ServerSpec, ServerStatus, ServerView>

const ZONE_UNKNOWN = 'The zone is not known yet.'

export function openServers(parts: Pick<Parts, 'store' | 'caches' | 'db' | 'clock' | 'hasPeers'>): Servers {
  const { caches } = parts
  const [plans, zones, templates, nodes] = [caches.of(Plan), caches.of(Zone), caches.of(Template), caches.of(Node)]
  const surroundingsOf = ({ spec, status }: ServerObject): ServerSurroundings => {
    const zone = zones.get({ name: spec.zone })
    return {
      plan: plans.get({ name: spec.plan })?.spec,
      zone: zone?.spec,
      haObstacle: zone?.status === undefined ? ZONE_UNKNOWN : zone.status.haObstacle,
      template: spec.template === undefined ? undefined : templates.get({ name: spec.template })?.spec,
      work: status?.nodeName === undefined ? undefined : nodes.get({ name: status.nodeName })?.status?.plannedWork,
    }
  }
  return openObjects(parts, {
    name: 'server',
    title: 'server',
    resource: Server,
    surroundingsOf,
    toView: toServerView,
    labelsOf: ({ labels }) => labels,
    fields: { hostname: ({ hostname }) => hostname },
  })
}
