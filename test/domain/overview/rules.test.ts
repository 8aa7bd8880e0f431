import { expect, test } from 'vitest'
import { isQuotaNear, nameOf, problemOf, type ResourceView } from '../../../domain/overview/rules.ts'

const shown = (more: Partial<ResourceView>): ResourceView => ({ id: 'a', ...more })
const operation = { id: 'op' }

test.each<readonly [string, Partial<ResourceView>, string | undefined]>([
  ['works', { state: 'started' }, undefined],
  ['is in error, and says why', { state: 'error', state_detail: 'No disk.' }, 'No disk.'],
  ['is in error, and does not say why', { state: 'error', state_detail: '' }, 'It is in the state error.'],
  ['is in error during a change', { state: 'error', active_operation: operation }, 'It is in the state error.'],
  ['failed', { state: 'error', failure_reason: 'No answer.' }, 'No answer.'],
  ['is not healthy', { state: 'running', is_healthy: false, health_detail: 'Down.' }, 'Down.'],
  ['is not healthy without a reason', { is_healthy: false, health_detail: '' }, 'It is not healthy.'],
  ['is not healthy during a change', { is_healthy: false, active_operation: operation }, undefined],
  ['is not healthy while it is created', { state: 'creating', is_healthy: false }, undefined],
  ['is not healthy while it is deleted', { state: 'deleting', is_healthy: false }, undefined],
  ['has no API', { state: 'running', health: { api_server: 'unhealthy', detail: 'No quorum.' } }, 'No quorum.'],
  ['has an unknown API', { state: 'running', health: { api_server: 'unknown', detail: '' } }, undefined],
  ['is damaged', { state: 'online', verification_error: 'A chunk.' }, 'A chunk.'],
  ['was verified', { state: 'online', verification_error: null }, undefined],
  ['does not archive', { state: 'running', is_healthy: true, backups: { archive_failure: 'Full.' } }, 'Full.'],
  ['archives', { state: 'running', backups: { archive_failure: '' } }, undefined],
])('a resource that %s', (_which, more, problem) => {
  expect(problemOf(shown(more))).toBe(problem)
})

test.each([
  [{ hostname: 'web', title: 'The first' }, 'web'],
  [{ name: 'db' }, 'db'],
  [{ title: '' }, 'a'],
  [{ address: '192.0.2.1' }, '192.0.2.1'],
])('the name of %o', (more, name) => {
  expect(nameOf(shown(more))).toBe(name)
})

test.each([
  ['networks', 10, 8, true],
  ['networks', 10, 7, false],
  ['networks', 10, 11, true],
  ['networks', 0, 0, false],
  ['playgrounds', 1, 1, false],
])('%s, %d allowed and %d used', (name, limit, used, isNear) => {
  expect(isQuotaNear({ name, limit, used })).toBe(isNear)
})
