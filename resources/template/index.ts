/** What operators do with templates. The stored shape is the catalog's (`../catalog/stored.ts`); these routes are
 *  served on the operator listener only. */
import { z } from 'zod'
import { GUEST_USER_LENGTH_MAXIMUM, GUEST_USER_PATTERN } from '../../domain/server/guest-user.ts'
import {
  TEMPLATE_STATES,
  TEMPLATE_URL_LENGTH_MAXIMUM,
  type TemplateSpec,
  type TemplateStatus,
  TemplateView,
  toTemplateView,
  type ZoneSpec,
  type ZoneStatus,
} from '../catalog/index.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { DateTime, Printable, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'

const MEMORY_DEFAULT_MEBIBYTES = 512
const ZONES_MAXIMUM = 256

export const OperatorTemplateView = z
  .strictObject({
    ...TemplateView.shape,
    zones: z.array(z.string()).describe('Zones that it is to be in; those of the catalog show where it is.'),
    hidden_at: DateTime.nullable().describe('From when on it is in no list.'),
    state: z.enum(TEMPLATE_STATES),
    state_detail: z.string(),
    source: z.strictObject({
      kind: z.enum(['built', 'url']).describe('built: nodes make it by their own recipe.'),
      url: z.string().nullable().describe('Where nodes fetch it; null when they build it.'),
      checksum_sha256: z.string().nullable().describe('Of the file at url.'),
    }),
    active_operation: OperationView.nullable(),
  })
  .meta({ id: 'OperatorTemplate' })
export type OperatorTemplateView = z.infer<typeof OperatorTemplateView>

/** `zones` are all there are. */
export function toOperatorTemplateView(
  template: Stored<TemplateSpec, TemplateStatus>,
  zones: readonly Stored<ZoneSpec, ZoneStatus>[],
): OperatorTemplateView {
  const { name, spec, status, isDeleting } = template
  const { built, url, checksum } = spec.image
  const operation = activeOperationOf({ spec, status })
  const isLeaving = isDeleting || spec.operation?.kind === 'template.delete'
  return {
    ...toTemplateView(template, zones),
    zones: spec.zones.length > 0 ? spec.zones : zones.map((zone) => zone.name).sort(),
    hidden_at: spec.hiddenAt ?? null,
    state: isLeaving ? 'deleting' : (status?.state ?? (built === undefined ? 'creating' : 'online')),
    state_detail: status?.stateDetail ?? '',
    source: { kind: built === undefined ? 'url' : 'built', url: url ?? null, checksum_sha256: checksum ?? null },
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'template', id: name }),
  }
}
const Accepted = z.strictObject({ template: OperatorTemplateView, operation: OperationView })

export const CreateTemplate = z
  .strictObject({
    name: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
      .describe('What servers call it; unique, and its id.'),
    title: Printable.min(1).max(255),
    source_url: z
      .url({ protocol: /^https$/ })
      .max(TEMPLATE_URL_LENGTH_MAXIMUM)
      .describe('A raw or qcow2 disk on the public Internet that brings its boot loader and depends on no other file.'),
    checksum_sha256: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hex digits')
      .describe('SHA-256 of the file at source_url, in hex.'),
    os_family: Printable.min(1).max(63),
    os_version: Printable.max(63).default(''),
    default_user: z
      .string()
      .max(GUEST_USER_LENGTH_MAXIMUM)
      .regex(GUEST_USER_PATTERN, 'must be a letter or _, then letters, digits, _, . and -')
      .describe('User whose SSH keys are those of the server.'),
    min_memory_mebibytes: z.int().min(32).max(4_194_304).default(MEMORY_DEFAULT_MEBIBYTES),
    zones: z.array(ZoneName).min(1).max(ZONES_MAXIMUM).describe('Zones whose nodes are to hold it.'),
  })
  .meta({ id: 'CreateTemplate' })

const verbs = verbsOf({
  path: '/v1/operator/templates',
  area: 'Server repair, storage, templates',
  noun: 'template',
  view: OperatorTemplateView,
  staff: 'operations',
  access: { resource: 'templates', scope: 'cluster' },
})

export const listOperatorTemplates = verbs.listWhole('list_operator_templates', {
  summary: 'List all templates',
  description: 'Also hidden and deprecated ones, and those that are being made.',
})

export const createTemplate = verbs.create('create_template', {
  summary: 'Make a template of a file',
  description:
    'Every node of its zones fetches the file from the public Internet and takes it when its checksum is right. ' +
    'Servers are made from it from the moment the operation has succeeded.',
  starts: ['template.create'],
  body: CreateTemplate,
  example: {
    name: 'debian-12',
    title: 'Debian 12',
    source_url: 'https://images.example.com/debian-12.qcow2',
    checksum_sha256: EXAMPLE.checksum,
    os_family: 'debian',
    os_version: '12',
    default_user: 'debian',
    zones: ['eu-1a'],
  },
})

export const updateTemplate = verbs.change('update_template', {
  summary: 'Deprecate or hide a template',
  description:
    'A deprecated template is listed on request only, a hidden one is not listed; servers are made from both. null ' +
    'takes it back.',
  body: z.strictObject({
    deprecated_at: DateTime.nullish().describe('From when on it is shown as outdated.'),
    hidden_at: DateTime.nullish().describe('From when on it is in no list.'),
  }),
  example: { deprecated_at: '2027-01-01T00:00:00Z' },
})

export const copyTemplate = verbs.post('copy_template', '/{id}/copy', {
  summary: 'Bring a template to another zone',
  description: 'Its nodes fetch the same file. When that fails the template stays as it was, in the zones that it has.',
  starts: ['template.copy'],
  body: z.strictObject({ zone: ZoneName }),
  example: { zone: 'eu-1b' },
  answers: { 202: Accepted },
})

export const deleteTemplate = verbs.remove('delete_template', {
  summary: 'Delete a template',
  description:
    'Nothing new is made from it at once; servers that are being made are finished first. Servers keep working: ' +
    'disks of what was fetched are copies, and nodes keep the versions that they have built.',
  starts: ['template.delete'],
})

export const TEMPLATE_ROUTES = [
  listOperatorTemplates,
  createTemplate,
  updateTemplate,
  copyTemplate,
  deleteTemplate,
] as const
