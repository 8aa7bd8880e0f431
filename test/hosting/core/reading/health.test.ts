/** Only what a program says that is well counts: not whatever answers in its place. */
import { expect, test } from 'vitest'
import { isApiReady, isMemberHealthy } from '../../../../hosting/core/reading/health.ts'

test.each([
  [200, 'ok', true],
  [200, 'ok\n', true],
  [200, '', false],
  [200, '<html>hello</html>', false],
  [200, '{"kind":"Status"}', false],
  [500, 'ok', false],
  [403, '{"kind":"Status"}', false],
])('an API server that answers %i %j is ready: %s', (status, text, is) => {
  expect(isApiReady({ status, text })).toBe(is)
})

test.each([
  [200, '{"health":"true","reason":""}', true],
  [200, '{"health":"false","reason":"ALARM NOSPACE"}', false],
  [503, '{"health":"true"}', false],
  [200, '{"health": "false"}', false],
  [200, '{}', false],
  [200, 'null', false],
  [200, '', false],
  [200, 'ok', false],
])('a member that answers %i %j is healthy: %s', (status, text, is) => {
  expect(isMemberHealthy({ status, text })).toBe(is)
})
