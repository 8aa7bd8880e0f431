/** Regions, zones, plans and templates, from the cache: complete lists, in the order of their names. */
import { serverPlans } from '../../../changes/kit/machine.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { unknownRegion, unknownZone } from '../../../changes/kit/zone.ts'
import { notFound } from '../../../domain/problem.ts'
import { etagOf } from '../../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Cache } from '../../../kit/kube/cache.ts'
import {
  getTemplate,
  isAvailable,
  isBuiltHere,
  isHidden,
  listPlans,
  listRegions,
  listTemplates,
  listZones,
  Region,
  Template,
  type TemplateSpec,
  type TemplateStatus,
  toPlanView,
  toRegionView,
  toTemplateView,
  toZoneView,
  Zone,
} from '../../../resources/catalog/index.ts'
import type { Stored } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'
import { completeList } from '../../kit/list/page.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export function catalogEndpoints({ caches }: Pick<Parts, 'caches'>): readonly Endpoint[] {
  const regions = caches.of(Region)
  const zones = caches.of(Zone)
  const templates = caches.of(Template)
  const storedZones = () => zones.list().map((zone) => storedOf(zone))
  return [
    customerEndpoint(listRegions, async () =>
      completeList(byName(regions).map((region) => toRegionView(region, byName(zones)))),
    ),
    customerEndpoint(listZones, async ({ query }) => {
      if (query.region !== undefined && regions.get({ name: query.region }) === undefined)
        throw unknownRegion(worldOf(caches), query.region)
      return completeList(
        byName(zones)
          .filter((zone) => query.region === undefined || zone.spec.region === query.region)
          .map(toZoneView),
      )
    }),
    customerEndpoint(listPlans, async () =>
      completeList(byName({ list: () => serverPlans(worldOf(caches)) }).map(toPlanView)),
    ),
    customerEndpoint(listTemplates, async ({ query, now }) => {
      if (query.zone !== undefined && zones.get({ name: query.zone }) === undefined)
        throw unknownZone(worldOf(caches), query.zone)
      const views = byName(templates)
        .filter(({ spec, status }) => isListed({ spec, status }, now) && isAvailable(spec, now))
        .map((template) => toTemplateView(template, storedZones(), query.zone))
      return completeList(
        views.filter(
          (view) =>
            (query.zone === undefined || view.zones.includes(query.zone)) &&
            (query.os_family === undefined || view.os_family === query.os_family) &&
            (query.include_deprecated === 'true' ||
              view.deprecated_at === null ||
              Date.parse(view.deprecated_at) > now.getTime()),
        ),
      )
    }),
    customerEndpoint(getTemplate, async ({ params, now }) => {
      const template = templates.get({ name: params.name })
      if (template === undefined || !isListed(template, now)) throw notFound('template')
      return {
        status: 200,
        body: { template: toTemplateView(storedOf(template), storedZones()) },
        headers: { etag: etagOf(template.metadata.generation ?? 0) },
      }
    }),
  ]
}

/** A template that nodes fetch is listed only once a zone has it. */
const isListed = (
  { spec, status }: { readonly spec: TemplateSpec; readonly status?: TemplateStatus | undefined },
  now: Date,
): boolean => !isHidden(spec, now) && (isBuiltHere(spec) || status?.state === 'online')

const byName = <Spec, Status>(cache: Pick<Cache<Spec, Status>, 'list'>): Stored<Spec, Status>[] =>
  cache
    .list()
    .map(storedOf)
    .sort((one, other) => (one.name < other.name ? -1 : 1))
