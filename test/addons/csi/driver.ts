/** The driver as it runs for a cluster: two processes, each with a socket, and a client of the interface. */
import { type ChildProcess, spawn } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, credentials, type MethodDefinition, type ServiceError } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { environment, nodeBinary } from '../../../kit/sys/process.ts'
import { eventually, Unrecoverable } from '../../eventually.ts'

const ROOT = join(import.meta.dirname, '../../..')

export interface Driver {
  readonly socket: string
  readonly process: ChildProcess
  readonly said: () => string
  stop(): Promise<void>
}

/** Answers once its socket is there. */
export async function startDriver(
  part: 'controller' | 'node',
  folder: string,
  settings: Readonly<Record<string, string>>,
): Promise<Driver> {
  const socket = join(folder, `${part}.sock`)
  const child = spawn(nodeBinary(), [join(ROOT, 'addons/csi/main.ts'), part], {
    env: { PATH: environment()['PATH'], SVCCLOUD_CSI_SOCKET: socket, ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  await eventually(`the ${part} part`, async () => {
    if (child.exitCode !== null) throw new Unrecoverable(said)
    if (!said.includes('"ready"')) return false
    await access(socket)
    return true
  })
  return {
    socket,
    process: child,
    said: () => said,
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.once('exit', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}

const definitions = loadSync(join(ROOT, 'addons/csi/csi.proto'), { longs: Number, enums: String, defaults: true })

export interface Caller {
  /** Rejects with an error that has a numeric `code`. */
  call<Answer>(method: string, request: object): Promise<Answer>
  close(): void
}

/** Speaks to a driver as a kubelet does; `Node` or `Controller` is the service. */
export function callerOf(socket: string, service: 'Node' | 'Controller'): Caller {
  const client = new Client(`unix:${socket}`, credentials.createInsecure())
  return {
    call: (method, request) =>
      new Promise((resolve, reject) => {
        // services are tables of methods
        const found = (definitions[`csi.v1.${service}`] as unknown as Record<string, MethodDefinition<object, object>>)[
          method
        ]
        if (found === undefined) throw new Error(`there is no method ${method}`)
        client.makeUnaryRequest(
          found.path,
          found.requestSerialize,
          found.responseDeserialize,
          request,
          (error: ServiceError | null, answer) =>
            // what the file says it answers
            error === null ? resolve(answer as never) : reject(error),
        )
      }),
    close: () => client.close(),
  }
}
