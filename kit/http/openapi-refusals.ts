/** Refusals in the document: each status is one shared response with the service's own texts as its example. */
import { z } from 'zod'
import type { ZodOpenApiResponseObject } from 'zod-openapi'
import {
  badField,
  emailUnverified,
  notFound,
  operationInProgress,
  Problem,
  quotaExceeded,
  rateLimited,
  TITLES,
  unauthenticated,
  unavailable,
} from '../../domain/problem.ts'

/** The problem document that every refusal is. */
const ProblemDocument = z
  .looseObject({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('Written for people, safe to show.'),
    reason: z.string().optional().describe('For programs; clients ignore values they do not know.'),
    errors: z
      .array(z.looseObject({ field: z.string(), detail: z.string() }))
      .optional()
      .describe('What is wrong with which field.'),
    resource: z.looseObject({ type: z.string(), id: z.string() }).optional(),
    active_operation_id: z.string().optional().describe('The operation that keeps the resource busy.'),
    quota: z.looseObject({ name: z.string(), limit: z.int(), used: z.int(), requested: z.int() }).optional(),
    alternatives: z
      .array(z.looseObject({ zone: z.string(), plan: z.string() }))
      .optional()
      .describe('Where there is room now.'),
  })
  .meta({ id: 'Problem', description: 'Why a request was refused (RFC 9457).' })

/** Every answer has them. */
export const HEADERS = {
  'X-Request-Id': {
    description: 'Names the request; audit entries that it caused carry the same id.',
    schema: { type: 'string', format: 'uuid' },
  },
} as const
const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait before asking again.', schema: { type: 'integer', minimum: 0 } },
} as const

export type RefusalStatus = keyof typeof TITLES

const ID = '01a1ff50-8add-720c-b721-970d86569b22'
const EXAMPLES: Readonly<Record<RefusalStatus, Problem>> = {
  400: badField('hostname', 'is required'),
  401: unauthenticated(),
  402: new Problem(402, 'Add a payment method or redeem a coupon first.', { reason: 'payment_method_required' }),
  403: emailUnverified(),
  404: notFound('server'),
  405: new Problem(405, 'This path does not take GET.'),
  409: operationInProgress(ID, { type: 'server', id: ID }),
  410: new Problem(410, 'This route no longer exists.'),
  413: new Problem(413, 'The body is larger than this route takes.'),
  415: new Problem(415, 'Send application/json.'),
  422: quotaExceeded({ name: 'servers', limit: 25, used: 25, requested: 1 }),
  429: rateLimited(2),
  500: new Problem(500, `Something went wrong on our side. When you ask for help, name the request ${ID}.`),
  501: new Problem(501, 'This cannot be had here.'),
  503: unavailable('no_capacity', 'There is no room for this plan in the zone now.', {
    alternatives: [{ zone: 'eu-1b', plan: 'tiny' }],
  }),
}

/** The name of a status among the shared responses, such as NotFound; `default` is any other refusal. */
export const refusalName = (status: RefusalStatus | 'default'): string =>
  status === 'default' ? 'Refused' : TITLES[status].replaceAll(' ', '')

export const refusalResponse = (status: RefusalStatus | 'default'): ZodOpenApiResponseObject => ({
  description: status === 'default' ? 'Any other refusal.' : TITLES[status],
  headers: status === 429 || status === 503 ? { ...HEADERS, ...RETRY_AFTER } : HEADERS,
  content: {
    'application/problem+json': {
      schema: ProblemDocument,
      ...(status === 'default' ? {} : { example: EXAMPLES[status].toDocument() }),
    },
  },
})
