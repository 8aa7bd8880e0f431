/** People at their terminals while the Kubernetes API is killed and starts again. The same scenario runs on the
 *  embedded API and on a real one. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { toolPath } from '../../tools/cluster/build.ts'
import { eventually } from '../eventually.ts'

const run = promisify(execFile)
const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.restart.example' },
  spec: {
    group: 'restart.example',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' } } },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
}
const READY = {
  status: {
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Made', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
}

/** `crash` kills the server and resolves when it serves again. */
export async function tryRestart(kubeconfig: string, crash: () => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-restart-'))
  const common = ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'cache')]
  const kubectl = async (...flags: string[]) => (await run(toolPath('kubectl'), [...common, ...flags])).stdout
  const background = (...flags: string[]) => follow(spawn(toolPath('kubectl'), [...common, ...flags]))
  const applied = async (object: object, ...flags: string[]) => {
    await writeFile(join(folder, 'object.json'), JSON.stringify(object))
    return kubectl('apply', '--server-side', ...flags, '-f', join(folder, 'object.json'))
  }
  const widget = (size: number) => ({
    apiVersion: 'restart.example/v1',
    kind: 'Widget',
    metadata: { name: 'w' },
    spec: { size },
  })
  try {
    await applied(WIDGETS)
    await kubectl('wait', '--for=condition=Established', 'crd/widgets.restart.example', '--timeout=60s')
    await eventually('the kind to be served', () => applied(widget(1)))
    const watch = background('get', 'widgets', '-w', '-o', 'name')
    const wait = background('wait', '--for=condition=Ready', 'widget/w', '--timeout=180s')
    await eventually('the watch to show the widget', async () => watch.said().includes('widget.restart.example/w'))
    await kubectl('label', 'widget', 'w', 'seen=before')

    await crash()
    expect(await watch.ended).toBe(0) // as a command that got everything; for more, ask again
    expect(
      await kubectl(
        'get',
        'widget',
        'w',
        '-o',
        'jsonpath={.metadata.labels.seen} {.spec.size} {.metadata.managedFields[0].manager}',
      ),
    ).toBe('before 1 kubectl')
    await expect(applied(widget(2), '--field-manager=other')).rejects.toThrow('conflict with "kubectl": .spec.size')
    const again = background('get', 'widgets', '-w', '-o', 'name')
    await kubectl('patch', 'widget', 'w', '--subresource=status', '--type=merge', '-p', JSON.stringify(READY))
    expect(await wait.ended, wait.said()).toBe(0)
    expect(wait.said()).toContain('condition met')
    await eventually('the new watch to show the change', async () => again.said().split('\n').length > 1)
    again.stop()
    await kubectl('delete', 'widget', 'w', '--cascade=foreground', '--timeout=60s')
    expect(await kubectl('get', 'widgets', '-o', 'name')).toBe('')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function follow(child: ChildProcess): { readonly ended: Promise<number | null>; said(): string; stop(): void } {
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  return {
    ended: new Promise((resolve) => child.once('close', resolve)),
    said: () => said,
    stop: () => void child.kill(),
  }
}
