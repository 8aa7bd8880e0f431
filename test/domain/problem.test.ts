import { expect, test } from 'vitest'
import * as problems from '../../domain/problem.ts'

const RESOURCE = { type: 'server', id: 'web' }

test.each<readonly [string, problems.Problem, object]>([
  ['a bad request', problems.badRequest('No.'), { status: 400, title: 'Bad Request', detail: 'No.' }],
  [
    'a bad field',
    problems.badField('name', 'is taken'),
    { status: 400, detail: 'name: is taken', errors: [{ field: 'name', detail: 'is taken' }] },
  ],
  ['nobody', problems.unauthenticated(), { status: 401, title: 'Unauthorized' }],
  ['no right', problems.forbidden('No.'), { status: 403, title: 'Forbidden', detail: 'No.' }],
  ['no verified address', problems.emailUnverified(), { status: 403, reason: 'email_unverified' }],
  ['nothing there', problems.notFound('server'), { status: 404, detail: 'No such server.' }],
  [
    'another operation',
    problems.operationInProgress('op', RESOURCE),
    { status: 409, reason: 'operation_in_progress', active_operation_id: 'op', resource: RESOURCE },
  ],
  [
    'a full quota',
    problems.quotaExceeded({ name: 'servers', limit: 5, used: 4, requested: 2 }),
    {
      status: 422,
      reason: 'quota_exceeded',
      quota: { name: 'servers', limit: 5, used: 4, requested: 2 },
      detail: expect.stringMatching(/limit of 5 servers .* 4 are used and 2 more/),
    },
  ],
  ['too many requests', problems.rateLimited(7), { status: 429, reason: 'rate_limited' }],
  [
    'no capacity',
    problems.unavailable('no_capacity', 'Full.'),
    { status: 503, reason: 'no_capacity', detail: 'Full.' },
  ],
])('%s is a problem document', (_what, problem, expected) => {
  const document = problem.toDocument()
  expect(document).toMatchObject({ type: 'about:blank', title: problems.TITLES[problem.status], ...expected })
  expect(problem.name).toBe('Problem')
})

test('what is sent as a header is no member of the document, and what is not given is absent', () => {
  expect(problems.rateLimited(7, 'Wait.').toDocument()).toEqual({
    type: 'about:blank',
    title: 'Too Many Requests',
    status: 429,
    detail: 'Wait.',
    reason: 'rate_limited',
  })
  expect(new problems.Problem(405, 'No.', { allow: ['GET'] }).toDocument()).not.toHaveProperty('allow')
  for (const problem of [problems.badRequest('No.'), problems.forbidden('No.')])
    expect(problem.members).toStrictEqual({})
})

test('the cause is kept where there is one', () => {
  const cause = new Error('lost')
  expect([new problems.Problem(503, 'No.', {}, cause).cause, new problems.Unavailable('it', cause).cause]).toEqual([
    cause,
    cause,
  ])
  expect('cause' in new problems.Problem(503, 'No.')).toBe(false)
  const unavailable = new problems.Unavailable('the store')
  expect([unavailable.message, unavailable.what, unavailable.name, 'cause' in unavailable]).toEqual([
    'the store is not available',
    'the store',
    'Unavailable',
    false,
  ])
})
