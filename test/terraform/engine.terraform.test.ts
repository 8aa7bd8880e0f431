/** The engine by itself: its tests in Go. */
import { expect, test } from 'vitest'
import { runGo } from '../../tools/terraform.ts'

test('the tests of the engine pass', async () => {
  await runGo(['vet', './...'])
  expect(await runGo(['test', './...'])).toContain('ok')
})
