/** Playground: a free Kubernetes cluster for a few hours. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import { ELIGIBILITIES, END_REASONS, PLAYGROUND_STATES } from '../../domain/playground/rules.ts'
import { forOperators, resource, route } from '../kit/define.ts'
import { ById, DateTime, PageQuery, Printable, ZoneName, limitOf } from '../kit/shapes.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { verbsOf } from '../kit/verbs.ts'
import { EndpointUrl, ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, STATE } from '../kit/columns.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })

export const Playground = resource({
  kind: 'Playground',
  plural: 'playgrounds',
  shortNames: ['pg'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A free Kubernetes cluster for a few hours, with a control plane and its own guest. Deleting the object ends ' +
    'it. The API returns the kubeconfig.',
  spec: z
    .strictObject({
      region: z.string().min(1).max(63).describe('Region of the playground.'),
    })
    .describe('The desired state of the playground.'),
  status: z
    .strictObject({
      ...OBSERVED,
      name: z.string().max(63).optional().describe('Its name in the API: pg- and ten hexadecimal digits.'),
      state: z.enum(PLAYGROUND_STATES).optional().describe('State of the playground.'),
      isSimulated: z.boolean().optional().describe('Whether its host only simulates it: nobody can sign in.'),
      endpoint: EndpointUrl.optional().describe('URL of its API, once it is ready.'),
      appDomain: ObjectName.optional().describe('Wildcard domain of its Ingresses.'),
      expiresAt: Instant.optional().describe('Time of its automatic end.'),
      endReason: z.enum(END_REASONS).optional().describe('Reason for its end.'),
      detail: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable description of what it waits for; absent when it waits for nothing.'),
    })
    .describe('Observed state of the playground. Written by its controller.'),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    STATE,
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' },
    READY,
    AGE,
  ],
  fixed: ['region'],
})
export type PlaygroundSpec = z.infer<typeof Playground.spec>
export type PlaygroundStatus = z.infer<typeof Playground.status>

const Limits = z
  .strictObject({
    vcpus: z.int().describe('Cores of its guest.'),
    memory_mebibytes: z.int().describe('Memory for workloads in MiB.'),
    storage_gibibytes: z.int().describe('Disk space of its guest for all volumes together.'),
    pods: z.int().describe('Maximum number of pods at a time.'),
    volumes: z.int().describe('Maximum number of volume claims at a time.'),
  })
  .meta({ id: 'PlaygroundLimits' })

export const PlaygroundView = z
  .strictObject({
    id: z.string(),
    name: z.string().describe('DNS label: pg- and ten hexadecimal digits.'),
    region: z.string(),
    state: z.enum(PLAYGROUND_STATES),
    limits: Limits,
    app_domain: z.string().describe('Wildcard domain of its Ingresses.'),
    endpoint: z.string().nullable().describe('URL of its API; null until it is ready.'),
    end_reason: z.enum(END_REASONS).nullable().describe('Reason for its end; null before.'),
    failure_reason: z.string().nullable().describe('Human-readable reason for the failure; null unless it failed.'),
    created_at: DateTime,
    ready_at: DateTime.nullable().describe('Time when its API and its node were ready; null before.'),
    expires_at: DateTime,
    ended_at: DateTime.nullable().describe('Time when its end started; null before.'),
    deleted_at: DateTime.nullable().describe('Time when it was removed completely; null before.'),
  })
  .meta({ id: 'Playground' })
export type PlaygroundView = z.infer<typeof PlaygroundView>

const Offer = z
  .strictObject({
    is_available: z.boolean().describe('Whether any region offers playgrounds now.'),
    eligibility: z.enum(ELIGIBILITIES).describe('Whether a playground can be started, or the reason why not.'),
    regions: z.array(z.string()).describe('Regions that offer playgrounds; the first is the default.'),
    lifetime_hours: z.int().describe('Lifetime in hours.'),
    allowance: z.int().describe('Total number of playgrounds that an account may have over time.'),
    allowance_used: z.int().describe('Number of playgrounds used; failed starts do not count.'),
    limits: Limits,
    active: PlaygroundView.nullable().describe('Current playground of the account; null when there is none.'),
  })
  .meta({ id: 'PlaygroundOffer' })

const Envelope = z.strictObject({ playground: PlaygroundView })

const verbs = verbsOf({ path: '/v1/playgrounds', noun: 'playground', view: PlaygroundView })

export const listPlaygrounds = verbs.list('list_playgrounds', {
  summary: 'List playgrounds',
  description: 'Newest first, including ended playgrounds.',
  query: PageQuery.extend({ limit: limitOf(20) }),
})

export const startPlayground = verbs.create('start_playground', {
  summary: 'Start a playground',
  description:
    'A free Kubernetes cluster for a few hours, with a control plane and its own guest. An account can have one ' +
    'at a time.',
  needs: 'verified',
  audit: 'playground.start',
  body: z
    .strictObject({
      region: ZoneName.nullish().describe('A region of the offer. Defaults to its first region.'),
    })
    .meta({ id: 'StartPlayground' }),
  example: { region: 'eu-1' },
  refuses: [400, 409, 422, 503],
})

export const getPlaygroundOffer = verbs.get('get_playground_offer', '/offer', {
  summary: 'Get the playground offer',
  answers: { 200: Offer },
})

export const getPlayground = verbs.read('get_playground', { summary: 'Get a playground' })

export const endPlayground = verbs.remove('end_playground', {
  summary: 'End a playground',
  description: 'Its workloads and volumes are deleted. It counts as used.',
  audit: 'playground.end',
  answers: { 200: Envelope },
})

export const getPlaygroundKubeconfig = verbs.get('get_playground_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Get the kubeconfig of a playground',
  description: 'Owners and admins have all rights in it, members may edit.',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'playground.kubeconfig',
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('kubeconfig in YAML.'),
      expires_at: DateTime.describe('Expiry time of its token, at the latest the end of the playground.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const endPlaygroundAsStaff = route({
  ...forOperators('operations'),
  id: 'end_playground_as_staff',
  method: 'POST',
  path: '/v1/admin/playgrounds/{id}/end',
  summary: "End a customer's playground",
  audit: 'playground.end',
  isDestructive: true,
  params: ById,
  body: z.strictObject({ reason: Printable.min(1).max(500).describe('Reason for the audit log.') }),
  example: { reason: EXAMPLE.reason },
  answers: { 200: Envelope },
  refuses: [400, 404, 409],
})

export const PLAYGROUND_ROUTES = [
  listPlaygrounds,
  startPlayground,
  getPlaygroundOffer,
  getPlayground,
  endPlayground,
  getPlaygroundKubeconfig,
  endPlaygroundAsStaff,
] as const
