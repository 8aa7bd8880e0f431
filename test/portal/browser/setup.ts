/** What the files of the tier share: the product with simulated guests and the portal, and one Chromium. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import type { TestProject } from 'vitest/node'
import type { Endpoints } from '../../../embedded/cloud.ts'
import { isRoot } from '../../../kit/sys/process.ts'
import { Product } from '../../e2e/product.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly portalEndpoints?: Endpoints
    /** Where workers reach Chromium. */
    readonly chromiumUrl?: string
  }
}

const CHROMIUM = '/usr/bin/chromium'
/** The sandbox of Chromium needs an ordinary user. */
const FLAGS = isRoot() ? ['--no-sandbox', '--disable-dev-shm-usage'] : []

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const data = await mkdtemp(join(tmpdir(), 'svccloud-portal-'))
  const browser = await chromium.launchServer({ executablePath: CHROMIUM, args: FLAGS })
  try {
    const product = await Product.start({
      data,
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments'],
      // Each account comes from another address, so that the rates of addresses are not shared.
      environment: { SVCCLOUD_TRUSTED_PROXIES: '127.0.0.1' },
      hasPortal: true,
      warnings: [],
    })
    provide('portalEndpoints', product.endpoints)
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
