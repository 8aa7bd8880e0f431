import { expect, test } from 'vitest'
import { storeRefusal } from '../../../../apiserver/kit/change/store-refusal.ts'
import { Problem, Unavailable } from '../../../../domain/problem.ts'
import { ApiError } from '../../../../kit/kube/store.ts'

const refused = (code: number, reason: string, message = 'no', causes: ApiError['causes'] = []) =>
  storeRefusal(new ApiError({ code, reason, message, causes }))

test.each([
  ['a namespace that is going', 403, 'Forbidden', 'no', [{ reason: 'NamespaceTerminating' }], 409, 'state_not_allowed'],
  ['what a kind does not allow', 422, 'Invalid', 'spec.a: no', [], 409, 'state_not_allowed'],
  ['a lost race', 409, 'Conflict', 'no', [], 409, 'state_not_allowed'],
  ['a name that is there', 409, 'AlreadyExists', 'no', [], 409, 'state_not_allowed'],
  ['a quota of the cluster', 403, 'Forbidden', 'x is forbidden: exceeded quota: y', [], 503, 'no_capacity'],
])('%s is a problem with its reason', (_what, code, reason, message, causes, status, told) => {
  const problem = refused(code, reason, message, causes)
  expect(problem).toBeInstanceOf(Problem)
  expect(problem).toMatchObject({ status, members: { reason: told } })
})

test.each([
  [429, 'TooManyRequests'],
  [500, 'InternalError'],
  [504, 'Timeout'],
  [403, 'Forbidden'],
  [401, 'Unauthorized'],
  [404, 'NotFound'],
  [410, 'Expired'],
  [413, 'RequestEntityTooLarge'],
])('%d %s is an outage', (code, reason) => expect(refused(code, reason)).toBeInstanceOf(Unavailable))

test('anything else is what it is', () => {
  const bug = new TypeError('oops')
  expect(storeRefusal(bug)).toBe(bug)
})
