/** Operators' actions on templates. The stored shape is in the catalog (`../catalog/stored.ts`); these routes are
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
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { DateTime, Printable, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { MemoryMebibytes, Title } from '../kit/fields.ts'

const MEMORY_DEFAULT_MEBIBYTES = 512
const ZONES_MAXIMUM = 256

export const OperatorTemplateView = z
  .strictObject({
    ...TemplateView.shape,
    zones: z.array(z.string()).describe('Desired zones; the catalog shows the zones that have it.'),
    hidden_at: DateTime.nullable().describe('Time from which no list contains it.'),
    state: z.enum(TEMPLATE_STATES),
    state_detail: z.string(),
    source: z.strictObject({
      kind: z.enum(['built', 'url']).describe('built: nodes build it with their own recipe.'),
      url: z.string().nullable().describe('URL from which nodes download it; null when they build it.'),
      checksum_sha256: z.string().nullable().describe('SHA-256 of the file at url.'),
    }),
    active_operation: OperationView.nullable(),
  })
  .meta({ id: 'OperatorTemplate' })
export type OperatorTemplateView = z.infer<typeof OperatorTemplateView>

/** `zones` are all zones. */
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
    active_operation:
      operation === undefined ? null : toOperationView(operation, namedTarget('template', { name, spec })),
  }
}
const Accepted = z.strictObject({ template: OperatorTemplateView, operation: OperationView })

export const CreateTemplate = z
  .strictObject({
    name: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
      .describe('Name that servers use; unique, and the id of the template.'),
    title: Title.min(1),
    source_url: z
      .url({ protocol: /^https$/ })
      .max(TEMPLATE_URL_LENGTH_MAXIMUM)
      .describe(
        'HTTPS URL on the public Internet of a raw or qcow2 disk with its own boot loader. The disk must not ' +
          'depend on another file.',
      ),
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
      .describe('User who gets the SSH keys of the server.'),
    min_memory_mebibytes: MemoryMebibytes.default(MEMORY_DEFAULT_MEBIBYTES),
    zones: z.array(ZoneName).min(1).max(ZONES_MAXIMUM).describe('Zones whose nodes must hold it.'),
  })
  .meta({ id: 'CreateTemplate' })

const verbs = verbsOf({
  path: '/v1/operator/templates',
  noun: 'template',
  view: OperatorTemplateView,
  staff: 'operations',
  access: { resource: 'templates', scope: 'cluster' },
})

export const listOperatorTemplates = verbs.listWhole('list_operator_templates', {
  summary: 'List all templates',
  description: 'Includes hidden and deprecated templates, and those that are being created.',
})

export const createTemplate = verbs.create('create_template', {
  summary: 'Create a template from a file',
  description:
    'Every node of its zones downloads the file from the public Internet and accepts it when its checksum ' +
    'matches. Servers can be created from it after the operation has succeeded.',
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
    'A deprecated template is listed only on request, a hidden one never; servers can be created from both. null ' +
    'reverts the change.',
  body: z.strictObject({
    deprecated_at: DateTime.nullish().describe('Time from which it is shown as deprecated.'),
    hidden_at: DateTime.nullish().describe('Time from which no list contains it.'),
  }),
  example: { deprecated_at: '2027-01-01T00:00:00Z' },
})

export const copyTemplate = verbs.post('copy_template', '/{id}/copy', {
  summary: 'Copy a template to another zone',
  description: 'Its nodes download the same file. If that fails, the template stays unchanged in its current zones.',
  starts: ['template.copy'],
  body: z.strictObject({ zone: ZoneName }),
  example: { zone: 'eu-1b' },
  answers: { 202: Accepted },
})

export const deleteTemplate = verbs.remove('delete_template', {
  summary: 'Delete a template',
  description:
    'New use is refused immediately; servers in creation are completed first. Existing servers keep working: ' +
    'disks from downloaded images are copies, and nodes keep the versions that they have built.',
  starts: ['template.delete'],
})

export const TEMPLATE_ROUTES = [
  listOperatorTemplates,
  createTemplate,
  updateTemplate,
  copyTemplate,
  deleteTemplate,
] as const
