/** What the files of the tier share: the product with simulated guests and the portal, and one Chromium. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import type { Endpoints } from '../../../embedded/cloud.ts'
import { Product } from '../../e2e/product.ts'
import { launchServer } from './kit/chromium.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly portalEndpoints?: Endpoints
    /** Folder of the product. */
    readonly portalData?: string
    /** What `npm start` printed. */
    readonly portalOutput?: string
    /** Where workers reach Chromium. */
    readonly chromiumUrl?: string
  }
}

const NODES = 'eu-1a=2,eu-1b=2,eu-1c=2'

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const data = await mkdtemp(join(tmpdir(), 'svccloud-portal-'))
  const browser = await launchServer()
  try {
    const product = await Product.start({
      data,
      // Nodes of the last zone are drained and lost by one test file; all other files use the other zones.
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments', '--nodes', NODES],
      // Each account comes from another address, so that the rates of addresses are not shared.
      environment: { SVCCLOUD_TRUSTED_PROXIES: '127.0.0.1' },
      hasPortal: true,
      warnings: [],
    })
    provide('portalEndpoints', product.endpoints)
    provide('portalData', data)
    provide('portalOutput', product.output())
    provide('chromiumUrl', browser.wsEndpoint())
    return async () => {
      await browser.close()
      await product.stop()
      await rm(data, { recursive: true, force: true })
    }
  } catch (error) {
    await browser.close()
    await rm(data, { recursive: true, force: true })
    throw error
  }
}
