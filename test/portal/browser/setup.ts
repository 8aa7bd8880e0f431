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

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const data = await mkdtemp(join(tmpdir(), 'svccloud-portal-'))
  const browser = await launchServer()
  try {
    const product = await Product.start({
      data,
      // Servers of one zone move when a test drains a node there; all other tests use the other zone.
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments', '--nodes', 'eu-1a=2,eu-1b=2'],
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
