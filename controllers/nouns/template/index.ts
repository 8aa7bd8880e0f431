/** The template controller: what it reads. `plan.ts` decides. */
import { isBuiltHere, Template, Zone } from '../../../resources/catalog/index.ts'
import { Image, nodeOf } from '../../../resources/instance/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { staffAuditEffect } from '../../kit/audit.ts'
import { creationsFrom, isStorageBeingMade } from '../../kit/being-made.ts'
import { controller } from '../../kit/controller.ts'
import { findEditor } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'
import { reachableNodes } from '../../kit/reachable-nodes.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import {
  detectEdit,
  isLeaving,
  type ImageObject,
  type Observed,
  plan,
  type TemplateEffects,
  type TemplateObject,
  type ZoneUse,
} from './plan.ts'

const IMAGES_OF = 'images of a template'
const MADE_OF = 'made of a template in a zone'
const inZone = (template: string, zone: string): string => `${template}/${zone}`
const hasHad = (template: TemplateObject | undefined, zone: string): boolean =>
  template?.status?.zones?.includes(zone) === true

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
    parts.caches
      .of(Storage)
      .addIndex(MADE_OF, ({ spec: { source, zone } }) => (source?.kind === 'template' ? [inZone(source.id, zone)] : []))
    const all = () => templates.list().map(({ metadata: { name } }) => ({ name }))
    return {
      watches: [
        watch(Image, ({ spec: { image } }: ImageObject) => (image.namespace === '' ? [{ name: image.name }] : [])),
        watch(Node, all),
        watch(Zone, all),
        watch(Storage, ({ spec: { source, zone } }) =>
          source?.kind === 'template' && !hasHad(templates.get({ name: source.id }), zone) ? [{ name: source.id }] : [],
        ),
        watch(Server, () => []),
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
    ...(isBuiltHere(spec)
      ? { uses: wanted.filter((zone) => !hasHad(template, zone)).map((zone) => useIn(caches, metadata.name, zone)) }
      : {}),
    ...(isLeaving(template) ? { users: await creationsFrom(store, { kind: 'template', id: metadata.name }) } : {}),
    editor: detectEdit(template) === undefined ? '' : await findEditor(store, Template, template, ''),
  }
}

function useIn(caches: Parts['caches'], template: string, zone: string): ZoneUse {
  const storages = caches.of(Storage).by(MADE_OF, inZone(template, zone))
  const isBuilt = caches.of(Zone).get({ name: zone })?.status?.builtTemplates?.includes(template) === true
  const times = storages
    .filter(isStorageBeingMade)
    .map(({ metadata }) => metadata.creationTimestamp ?? '')
    .sort()
  return {
    zone,
    isMade: isBuilt || storages.some(({ status }) => status?.state === 'online'),
    newestAt: times.at(-1),
    detail: storages.find(({ status }) => status?.state === 'error')?.status?.stateDetail,
  }
}
