/** The template controller: what it reads. What it decides is `plan.ts`. */
import { Template, Zone } from '../../resources/catalog/index.ts'
import { Image, nodeOf } from '../../resources/instance/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { Node } from '../../resources/node/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { staffAuditEffect } from '../audit.ts'
import { isBeingMade } from '../being-made.ts'
import { controller } from '../controller.ts'
import { findEditor } from '../operation/direct-edit.ts'
import type { Parts } from '../parts.ts'
import { reachableNodes } from '../reachable-nodes.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import {
  detectEdit,
  isLeaving,
  type ImageObject,
  type Observed,
  plan,
  type TemplateEffects,
  type TemplateObject,
} from './plan.ts'

const IMAGES_OF = 'images of a template'

export const templateController = controller<TemplateEffects>()({
  name: 'template',
  resource: Template,
  sharding: 'common',
  finalizer: finalizerOf(Template),
  plan,
  reads: [Node, Zone, Server, Storage],
  // A template whose operation is its deletion is deleted here.
  writes: [Image, Template],
  open(parts: Parts) {
    const templates = parts.caches.of(Template)
    parts.caches.of(Image).addIndex(IMAGES_OF, ({ spec }) => [spec.image.uid])
    const all = () => templates.list().map(({ metadata: { name } }) => ({ name }))
    return {
      watches: [
        watch(Image, ({ spec: { image } }: ImageObject) => (image.namespace === '' ? [{ name: image.name }] : [])),
        watch(Node, all),
        watch(Zone, all),
        ...[watch(Server, () => []), watch(Storage, () => [])],
      ],
      observe: (template) => observe(parts, template),
      effects: { audit: staffAuditEffect(parts, 'template') },
    }
  },
})

async function observe({ caches, store }: Parts, template: TemplateObject): Promise<Observed> {
  const { metadata, spec } = template
  const known = caches
    .of(Zone)
    .list()
    .map((zone) => zone.metadata.name)
  const wanted = spec.zones.length === 0 ? known : spec.zones
  const images = caches.of(Image).by(IMAGES_OF, metadata.uid ?? '')
  const zoneOf = (image: ImageObject): string | undefined => caches.of(Node).get({ name: nodeOf(image) })?.spec.zone
  return {
    zones: Object.fromEntries(
      wanted.filter((zone) => known.includes(zone)).map((zone) => [zone, reachableNodes(caches, zone)]),
    ),
    unknownZones: wanted.filter((zone) => !known.includes(zone)),
    images,
    strays: images.filter((image) => !wanted.includes(zoneOf(image) ?? '')),
    ...(isLeaving(template) ? { users: await usersOf(store, metadata.name) } : {}),
    editor: detectEdit(template) === undefined ? '' : await findEditor(store, Template, template, ''),
  }
}

/** What is being made from it, as Kubernetes says now: a cache may be behind. */
async function usersOf(store: Parts['store'], template: string): Promise<readonly string[]> {
  const [servers, storages] = await Promise.all([store.list(Server), store.list(Storage)])
  return [
    ...servers.items
      .filter((server) => server.spec.template === template && isBeingMade(server))
      .map(({ metadata }) => `server ${metadata.name}`),
    ...storages.items
      .filter(
        ({ metadata, spec: { source }, status }) =>
          metadata.deletionTimestamp === undefined &&
          source?.kind === 'template' &&
          source.id === template &&
          (status?.state ?? 'creating') === 'creating',
      )
      .map(({ metadata }) => `storage ${metadata.name}`),
  ]
}
