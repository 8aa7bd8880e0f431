/** What `npm start` says before it starts anything. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeBinary } from '../../kit/sys/process.ts'

const MAIN = join(import.meta.dirname, '../../embedded/start.js')
const FLAGS = ['--ephemeral', '--no-install', '--hypervisor', 'simulated', '--nodes', 'z1=1']
const PORTS = ['--port', '0', '--operator-port', '0', '--kubernetes-port', '0']

/** Runs it with a kubeconfig that cannot be read, so that it ends by itself. */
const start = (...flags: string[]): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((resolve) => {
    const given = [...FLAGS, ...PORTS, '--kubeconfig', '/nonexistent', '--database-url', 'postgresql://localhost/x']
    const child = execFile(nodeBinary(), [MAIN, ...given, ...flags], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    )
  })

const NOT_JUDGED = /WARNING: .*stores what people write with kubectl without asking the platform/

test('a cluster that cannot ask the webhook: the start says what is not judged', async () => {
  const { code, output } = await start()
  expect(output).toMatch(NOT_JUDGED)
  expect(output).toContain('is not a kubeconfig')
  expect(code).not.toBe(0)
}, 60_000)

test('with an address for the webhook there is nothing to say', async () => {
  const { output } = await start('--webhook-host', '127.0.0.1')
  expect(output).not.toMatch(NOT_JUDGED)
  expect(output).toContain('is not a kubeconfig')
}, 60_000)
