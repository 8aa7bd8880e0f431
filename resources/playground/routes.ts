/** Playgrounds as the API shows them: public shape and routes. */
import { z } from 'zod'
import { ELIGIBILITIES, END_REASONS, PLAYGROUND_STATES } from '../../domain/playground/rules.ts'
import { forOperators, route } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { ById, DateTime, limitOf, PageQuery, Printable, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'

const AREA = 'Playgrounds'

const Limits = z
  .strictObject({
    vcpus: z.int().describe('Cores of its guest.'),
    memory_mebibytes: z.int().describe('Memory that workloads may use.'),
    storage_gibibytes: z.int().describe('Room on the disk of its guest for all volumes together.'),
    pods: z.int().describe('Pods at a time.'),
    volumes: z.int().describe('Claims of volumes at a time.'),
  })
  .meta({ id: 'PlaygroundLimits' })

export const PlaygroundView = z
  .strictObject({
    id: z.string(),
    name: z.string().describe('DNS label: pg- and ten hexadecimal digits.'),
    region: z.string(),
    state: z.enum(PLAYGROUND_STATES),
    limits: Limits,
    app_domain: z.string().describe('Wildcard under which its Ingresses are served.'),
    endpoint: z.string().nullable().describe('URL of its API; null until it is ready.'),
    end_reason: z.enum(END_REASONS).nullable().describe('Why it has ended; null until it has.'),
    failure_reason: z.string().nullable().describe('What went wrong, for people; null unless it failed.'),
    created_at: DateTime,
    ready_at: DateTime.nullable().describe('When its API and its node were ready; null before.'),
    expires_at: DateTime,
    ended_at: DateTime.nullable().describe('When its end began; null before.'),
    deleted_at: DateTime.nullable().describe('When nothing of it was left; null before.'),
  })
  .meta({ id: 'Playground' })
export type PlaygroundView = z.infer<typeof PlaygroundView>

const Offer = z
  .strictObject({
    is_available: z.boolean().describe('Whether any region offers playgrounds now.'),
    eligibility: z.enum(ELIGIBILITIES).describe('Whether one can be started, or why not.'),
    regions: z.array(z.string()).describe('Regions that offer them; the first is taken when none is named.'),
    lifetime_hours: z.int().describe('How long one lasts.'),
    allowance: z.int().describe('How many an account may ever have.'),
    allowance_used: z.int().describe('How many of these it has had; failed starts do not count.'),
    limits: Limits,
    active: PlaygroundView.nullable().describe('The one that the account has now; null without one.'),
  })
  .meta({ id: 'PlaygroundOffer' })

const Envelope = z.strictObject({ playground: PlaygroundView })

const verbs = verbsOf({ path: '/v1/playgrounds', area: 'Playgrounds', noun: 'playground', view: PlaygroundView })

export const listPlaygrounds = verbs.list('list_playgrounds', {
  summary: 'List playgrounds',
  description: 'Newest first, with those that have ended.',
  query: PageQuery.extend({ limit: limitOf(20) }),
})

export const startPlayground = verbs.create('start_playground', {
  summary: 'Start a playground',
  description: 'A free Kubernetes cluster of a few hours: a control plane and its own guest, one at a time.',
  needs: 'verified',
  audit: 'playground.start',
  body: z
    .strictObject({
      region: ZoneName.nullish().describe('A region of the offer; its first one when left out.'),
    })
    .meta({ id: 'StartPlayground' }),
  example: { region: 'eu-1' },
  refuses: [400, 409, 422, 503],
})

export const getPlaygroundOffer = verbs.get('get_playground_offer', '/offer', {
  summary: 'Read whether a playground can be started',
  answers: { 200: Offer },
})

export const getPlayground = verbs.read('get_playground', { summary: 'Read a playground' })

export const endPlayground = verbs.remove('end_playground', {
  summary: 'End a playground',
  description: 'Its workloads and volumes go with it. It counts as used.',
  audit: 'playground.end',
  answers: { 200: Envelope },
})

export const getPlaygroundKubeconfig = verbs.get('get_playground_kubeconfig', '/{id}/kubeconfig', {
  summary: 'Read how kubectl gets into a playground',
  description: 'Owners and admins may do everything in it, members edit.',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'playground.kubeconfig',
  answers: {
    200: z.strictObject({
      kubeconfig: z.string().describe('YAML, as kubectl reads it.'),
      expires_at: DateTime.describe('Until when its token is taken: at most until the playground ends.'),
    }),
  },
  refuses: [404, 409, 503],
})

export const endPlaygroundAsStaff = route({
  ...forOperators('operations'),
  id: 'end_playground_as_staff',
  method: 'POST',
  path: '/v1/admin/playgrounds/{id}/end',
  area: AREA,
  summary: "End a customer's playground",
  audit: 'playground.end',
  isDestructive: true,
  params: ById,
  body: z.strictObject({ reason: Printable.min(1).max(500).describe('Why, for the audit log.') }),
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
