/** Refusals by the Kubernetes API, as customers read them: none of them is their fault or a bug, so none is 400 or
 *  500. */
import { conflict, Unavailable, unavailable } from '../../../domain/problem.ts'
import { ApiError, isAlreadyExists, isConflict, isNamespaceTerminating } from '../../../kit/kube/store.ts'

/** 409 for what the account's objects do not allow just now, and 503 for what the platform cannot do; any other error
 *  is returned as it is. */
export function storeRefusal(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  if (isNamespaceTerminating(error))
    return conflict('state_not_allowed', 'The account is being cleared in the management cluster. Try again later.')
  if (error.code === 403 && /exceeded quota/.test(error.message))
    return unavailable('no_capacity', 'The management cluster takes no more objects of this account.')
  if (error.reason === 'Invalid')
    return conflict('state_not_allowed', `The management cluster refused the change: ${error.message}`)
  if (isConflict(error) || isAlreadyExists(error))
    return conflict('state_not_allowed', 'The resource is being changed by others. Try again.')
  return new Unavailable('the Kubernetes API', error)
}
