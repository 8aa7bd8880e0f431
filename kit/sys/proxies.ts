/** Uses the proxies in the environment for every request that this process makes from now on. */
import * as http from 'node:http'

const VARIABLES = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy']

/** HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case, as other programs read them. Does nothing without any. `warn`
 *  is called when this version of Node does not support it, or when one of them is not an address. */
export function useProxies(warn: (text: string) => void): void {
  const named = VARIABLES.find((name) => (process.env[name] ?? '') !== '')
  if (named === undefined) return
  // Node 24.14 has it; older versions that run this program do not.
  const set: unknown = Reflect.get(http, 'setGlobalProxyFromEnv')
  if (typeof set !== 'function') return warn(`${named} is ignored by Node ${process.version}; Node 24.14 uses it`)
  try {
    set()
  } catch (error) {
    warn(`${named} is not used: ${error instanceof Error ? error.message : String(error)}`)
  }
}
