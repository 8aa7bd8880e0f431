/** AdmissionReview v1: the request that an API server sends before it writes, and the response. */
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import { ACTOR_LENGTH_MAXIMUM } from '../../../domain/operations.ts'
import type { Problem, ProblemStatus } from '../../../domain/problem.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'

/** Limits of what is stored of a review. The Kubernetes API keeps to them by itself, except for the name of a user. */
const NAME_LENGTH_MAXIMUM = 253
const UID_LENGTH_MAXIMUM = 64

const Metadata = z.looseObject({
  name: z.string().max(NAME_LENGTH_MAXIMUM).default(''),
  namespace: z.string().max(NAME_LENGTH_MAXIMUM).optional(),
  uid: z.string().max(UID_LENGTH_MAXIMUM).optional(),
  generation: z.number().optional(),
  deletionTimestamp: z
    .string()
    .nullish()
    .transform((at) => at ?? undefined),
  annotations: z.record(z.string(), z.string()).nullish(),
  finalizers: z.array(z.string()).nullish(),
})
/** The schema of its kind has validated it already; only the fields that are read of every object are parsed again. */
const Reviewed = z.looseObject({
  apiVersion: z.string(),
  kind: z.string().max(63),
  metadata: Metadata,
  spec: z.looseObject({}).optional(),
  status: z.looseObject({}).optional(),
})

export const AdmissionReview = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().min(1).max(UID_LENGTH_MAXIMUM),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    resource: z.looseObject({ group: z.string(), resource: z.string() }),
    subResource: z.string().default(''),
    namespace: z.string().default(''),
    userInfo: z.looseObject({ username: z.string().max(ACTOR_LENGTH_MAXIMUM).default('') }),
    object: Reviewed.nullish(),
    oldObject: Reviewed.nullish(),
    dryRun: z.boolean().nullish(),
  }),
})
export type AdmissionRequest = z.infer<typeof AdmissionReview>['request']

/** The reviewed object as its kind types it. */
export const typed = <Spec, Status>(object: AdmissionRequest['object']): KubeObject<Spec, Status> | undefined =>
  // the API server has checked it against its kind
  object == null ? undefined : (object as unknown as KubeObject<Spec, Status>)

/** The status as clients of Kubernetes name it. 422 has no name: for Invalid, kubectl shows fields and never the
 *  message. */
const REASONS: Partial<Readonly<Record<ProblemStatus, string>>> = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
}

const answer = (uid: string, response: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, ...response },
})

/** The response to the review with that uid. */
export const allowed = (uid: string) => answer(uid, { allowed: true })

/** The refusal as a Kubernetes Status. Its message starts with the contract's reason, because some clients show nothing
 *  else. */
export function refused(uid: string, { status, message, members: { reason, errors = [] } }: Problem) {
  const causes = [
    ...(reason === undefined ? [] : [{ reason, message }]),
    ...errors.map(({ field, detail }) => ({ reason: 'FieldValueInvalid', field, message: detail })),
  ]
  return answer(uid, {
    allowed: false,
    status: {
      status: 'Failure',
      code: status,
      ...defined({ reason: REASONS[status] }),
      message: reason === undefined ? message : `${reason}: ${message}`,
      ...(causes.length === 0 ? {} : { details: { causes } }),
    },
  })
}
