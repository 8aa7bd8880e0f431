/** Requests: idempotency keys, rate limits, and those of operators at the Kubernetes API. */
export {
  answerIdempotencyKey,
  forgetIdempotencyKeys,
  releaseIdempotencyKey,
  takeIdempotencyKey,
} from './idempotency-keys.ts'
export {
  type KubernetesRequest,
  isEdit,
  listKubernetesRequests,
  recordKubernetesRequest,
} from './kubernetes-requests.ts'
export { countRequest, forgetOldRequests } from './rate-limits.ts'
