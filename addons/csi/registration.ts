/** Registers the driver with the kubelet. The kubelet finds sockets in a folder, asks each for its kind, and then asks
 *  the driver for its node. A restarted kubelet asks again; after a refusal it asks again only if the socket is a new
 *  one. */
import { join } from 'node:path'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { DRIVER_NAME } from './identity.ts'
import { type CsiServer, serve } from './protocol.ts'

/** The kubelet's type of drivers of volumes, and the versions of their interface. */
const TYPE = 'CSIPlugin'
const VERSIONS = ['1.0.0']
const PAUSE_MILLISECONDS = 2_000

interface RegistrationStatus {
  readonly pluginRegistered: boolean
  readonly error: string
}

export interface RegistrationOptions {
  readonly socket: string
  /** Socket of the driver. */
  readonly endpoint: string
  readonly clock: Clock
  readonly log: Logger
}

/** Returns the function that stops it. */
export async function serveRegistration({ socket, endpoint, clock, log }: RegistrationOptions): Promise<CsiServer> {
  const stopping = new AbortController()
  const open = () => {
    const refused = Promise.withResolvers<void>()
    const Registration = {
      GetInfo: async () => ({ type: TYPE, name: DRIVER_NAME, endpoint, supportedVersions: VERSIONS }),
      async NotifyRegistrationStatus({ pluginRegistered, error }: RegistrationStatus) {
        if (pluginRegistered) log.info('registered')
        else {
          log.warn('the kubelet does not take the driver', { why: error })
          refused.resolve()
        }
        return {}
      },
    }
    const proto = { file: join(import.meta.dirname, 'registration.proto'), package: 'pluginregistration' }
    return serve({ socket, proto, services: { Registration }, log }).then((served) => ({
      served,
      over: refused.promise,
    }))
  }
  let current = await open()
  const stopped = new Promise<void>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  const keep = async () => {
    while (!stopping.signal.aborted) {
      await Promise.race([current.over, stopped])
      await current.served.stop()
      await clock.sleep(PAUSE_MILLISECONDS, stopping.signal)
      if (!stopping.signal.aborted) current = await open()
    }
  }
  const keeping = keep()
  return {
    async stop() {
      stopping.abort()
      await keeping
    },
  }
}
