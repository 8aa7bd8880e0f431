/** Serves the Container Storage Interface on a socket: gRPC around functions that take a request and return a response
 *  or throw. */
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Logger } from '../../kit/sys/log.ts'
import type { ControllerService, IdentityService, NodeService } from './messages.ts'
import { csiRefusal } from './refusal.ts'

export interface Services {
  readonly Identity: IdentityService
  readonly Controller?: ControllerService
  readonly Node?: NodeService
}

/** Far above the largest list in a response. */
const MESSAGE_BYTES_MAXIMUM = 16 * 1024 * 1024

export interface CsiServer {
  stop(): Promise<void>
}

/** Returns the function that stops it. */
export const serveCsi = (socket: string, services: Services, log: Logger): Promise<CsiServer> =>
  serve({
    socket,
    services: { ...services },
    log,
    proto: { file: join(import.meta.dirname, 'csi.proto'), package: 'csi.v1' },
  })

interface ServeOptions {
  readonly socket: string
  readonly proto: { readonly file: string; readonly package: string }
  /** By their names in the file. */
  readonly services: Readonly<Record<string, object>>
  readonly log: Logger
}

/** Everybody who can open the socket has all rights, so only its user can. */
export async function serve({ socket, proto, services, log }: ServeOptions): Promise<CsiServer> {
  const definitions = loadSync(proto.file, { longs: Number, enums: String, defaults: true })
  const server = new Server({ 'grpc.max_receive_message_length': MESSAGE_BYTES_MAXIMUM })
  for (const [name, service] of Object.entries(services)) {
    // the loader's type does not separate services from messages
    const definition = definitions[`${proto.package}.${name}`] as ServiceDefinition
    server.addService(definition, implementationOf(service, log))
  }
  await rm(socket, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    )
  })
  await chmod(socket, 0o600)
  return {
    stop: () =>
      new Promise((resolve) => {
        server.tryShutdown(() => resolve())
      }),
  }
}

/** Returns a promise even if the method throws at once. */
const answered = async (method: (request: unknown) => Promise<object>, request: unknown): Promise<object> =>
  method(request)

// Requests are decoded with the file that defines the types.
function implementationOf(service: object, log: Logger): UntypedServiceImplementation {
  return Object.fromEntries(
    Object.entries(service).map(([name, method]: [string, (request: unknown) => Promise<object>]) => {
      const handle: handleUnaryCall<unknown, object> = ({ request }, answer) => {
        answered(method, request).then(
          (value) => answer(null, value),
          (error: unknown) => {
            const refusal = csiRefusal(error)
            if (refusal === undefined) log.error('unexpected error', { method: name, error })
            else log.info('refused', { method: name, code: refusal.code, detail: refusal.message })
            const { code, message } = refusal ?? { code: 'INTERNAL', message: 'the driver failed; its log says how' }
            answer({ code: status[code], details: message })
          },
        )
      }
      return [name, handle]
    }),
  )
}
