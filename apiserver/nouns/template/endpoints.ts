/** Templates for operators. Each change is one conditional write of the Template, with the operation that brings it
 *  about where nodes have something to do. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { defined } from '../../../domain/defined.ts'
import { badField, conflict, notFound } from '../../../domain/problem.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { requireMatch } from '../../../kit/http/conditional.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import { Template, type TemplateSpec, Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import * as routes from '../../../resources/template/index.ts'
import { newStanza } from '../../kit/change/accept.ts'
import { begunView } from '../../kit/change/begun.ts'
import { beginAsOperator, patchWithOperation } from '../../kit/change/begin.ts'
import { changeAsOperator } from '../../kit/change/operator-change.ts'
import { completeList } from '../../kit/list/page.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { requireCopyable, requireIdle, type TemplateObject } from './rules.ts'

export function templateEndpoints(parts: Parts): readonly Endpoint[] {
  const templates = parts.caches.of(Template)
  parts.caches.of(Zone)
  return [
    operatorEndpoint(routes.listOperatorTemplates, async () => {
      const all = templates.list().toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
      return completeList(all.map((template) => viewOf(parts, template)))
    }),
    operatorEndpoint(routes.createTemplate, (call) => create(parts, call)),
    operatorEndpoint(routes.updateTemplate, (call) => update(parts, call)),
    operatorEndpoint(routes.copyTemplate, (call) => copy(parts, call)),
    operatorEndpoint(routes.deleteTemplate, (call) => remove(parts, call)),
  ]
}

const viewOf = ({ caches }: Parts, template: TemplateObject): routes.OperatorTemplateView =>
  routes.toOperatorTemplateView(
    storedOf(template),
    caches
      .of(Zone)
      .list()
      .map((zone) => storedOf(zone)),
  )

async function read({ store, caches }: Parts, name: string): Promise<TemplateObject> {
  const template = await store.get(Template, { name })
  if (template === undefined) throw notFound('template')
  caches.of(Template).apply(template)
  return template
}

function requireZone({ caches }: Parts, zone: string, field: string): void {
  if (caches.of(Zone).get({ name: zone }) === undefined) throw unknownZone(worldOf(caches), zone, field)
}

async function create(parts: Parts, call: Call<typeof routes.createTemplate, Operator>): Promise<Answer> {
  const { body, caller, request, now } = call
  const { name, zones, source_url: url, checksum_sha256: checksum } = body
  for (const [index, zone] of zones.entries()) requireZone(parts, zone, `zones.${index}`)
  const spec: TemplateSpec = {
    title: body.title,
    osFamily: body.os_family,
    osVersion: body.os_version,
    architecture: 'x86_64',
    defaultUser: body.default_user,
    minStorageGibibytes: 1,
    minMemoryMebibytes: body.min_memory_mebibytes,
    zones: [...new Set(zones)],
    image: { url, checksum: checksum.toLowerCase() },
    operation: newStanza(parts, 'template.create', { actor: caller.actor, requestId: request.requestId, now }),
  }
  const object = await changeAsOperator(parts, call, {
    resource: { type: 'template', id: name },
    audit: { action: 'template.create', detail: { url, zones: spec.zones.join(' ') } },
    async write() {
      try {
        return await parts.store.create(Template, { metadata: { name, finalizers: [finalizerOf(Template)] }, spec })
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        throw conflict('in_use', 'There is a template of this name.', { resource: { type: 'template', id: name } })
      }
    },
  })
  return accepted(parts, object)
}

function accepted(parts: Parts, template: TemplateObject): Answer {
  parts.caches.of(Template).apply(template)
  const operation = begunView(template, { type: 'template', id: template.metadata.name })
  return { status: 202, body: { template: viewOf(parts, template), operation } }
}

async function update(parts: Parts, call: Call<typeof routes.updateTemplate, Operator>): Promise<Answer> {
  const { id } = call.params
  const { deprecated_at: deprecatedAt, hidden_at: hiddenAt } = call.body
  const detail = Object.fromEntries(Object.entries(call.body).map(([field, value]) => [field, value ?? '']))
  const written = await changeAsOperator(parts, call, {
    resource: { type: 'template', id },
    audit: { action: 'template.update', detail },
    async write() {
      const template = await read(parts, id)
      requireMatch(call.request, etagOfObject(template))
      return parts.store.patch(
        Template,
        { name: id },
        {
          metadata: { resourceVersion: template.metadata.resourceVersion },
          spec: defined({ deprecatedAt, hiddenAt }),
        },
      )
    },
  })
  parts.caches.of(Template).apply(written)
  return { status: 200, body: { template: viewOf(parts, written) }, headers: { etag: etagOfObject(written) } }
}

async function copy(parts: Parts, call: Call<typeof routes.copyTemplate, Operator>): Promise<Answer> {
  const { id } = call.params
  const { zone } = call.body
  const { caller, request, now } = call
  requireZone(parts, zone, 'zone')
  const operation = newStanza(parts, 'template.copy', {
    actor: caller.actor,
    requestId: request.requestId,
    now,
    arguments: { zone },
  })
  const written = await changeAsOperator(parts, call, {
    resource: { type: 'template', id },
    audit: { action: 'template.copy', detail: { zone } },
    async write() {
      const template = await read(parts, id)
      const { zones } = template.spec
      if (zones.length === 0 || zones.includes(zone)) throw badField('zone', 'the template is in this zone already')
      requireCopyable(template)
      return patchWithOperation(parts, Template, template, operation, { zones: [...zones, zone] })
    },
  })
  return accepted(parts, written)
}

async function remove(parts: Parts, call: Call<typeof routes.deleteTemplate, Operator>): Promise<Answer> {
  const { id } = call.params
  const operation = await beginAsOperator(parts, call, {
    kind: 'template.delete',
    target: { type: 'template', id },
    resource: Template,
    read: () => read(parts, id),
    validate: requireIdle,
  })
  return { status: 202, body: { operation } }
}
