/** Debian's Chromium. */
import { chromium, type LaunchOptions } from 'playwright-core'
import { isRoot } from '../../../../kit/sys/process.ts'

const OPTIONS: LaunchOptions = {
  executablePath: '/usr/bin/chromium',
  // Its sandbox needs an ordinary user.
  args: isRoot() ? ['--no-sandbox', '--disable-dev-shm-usage'] : [],
}

/** For other processes, by its `wsEndpoint`. */
export const launchServer = () => chromium.launchServer(OPTIONS)

export const launch = () => chromium.launch(OPTIONS)
