/** What files reach that no text in them names: programs that an npm command starts, the content of an image or a
 *  package, folders that are read completely. It also lists texts that are names of folders by chance. `seen.ts` finds
 *  what is missing here. */
import type { Reaches } from './inputs.ts'

/** The programs of the product. */
const PRODUCT = [
  'embedded/start.js',
  'apiserver/main.ts',
  'controllers/main.ts',
  'db/main.ts',
  'agents/node/main.ts',
  'hosting/pods/main.ts',
  'addons/cloud/main.ts',
  'addons/csi/main.ts',
  'package.json',
] as const
/** The command-line client, as it is published. */
const PACKAGE = ['cli', 'client', 'package.json', 'tsconfig.json'] as const

const REACHED: Reaches['reached'] = {
  'bench/list.ts': ['bench', ...PRODUCT],
  'test/cli/package.unit-long.test.ts': PACKAGE,
  // Pages use the command, apply examples, install charts and run scripts of npm.
  'test/docs/blocks.ts': ['apiserver/staff/main.ts', 'charts', 'docs', 'examples', 'test/conformance', ...PACKAGE],
  'test/docs/guides.endurance.test.ts': PACKAGE,
  'test/e2e/product.ts': PRODUCT,
  'test/portal/browser/setup.ts': ['client', 'domain', 'portal', 'tsconfig.json'],
  'tools/cluster/build.ts': ['tools/cluster'],
  'test/terraform/setup.ts': ['terraform'],
  'tools/sdk/main.ts': ['sdk', 'LICENSE'],
  'tools/images/write.ts': [...PRODUCT, 'client', 'domain', 'portal'],
}

/** Files whose texts are not names of folders of the repository, but of the data folder, of pages, or of rules. */
const NAMES_NO_FOLDERS: readonly string[] = [
  'apiserver/kit/pages/customer.ts',
  'embedded/kit/data-folder.ts',
  'tools/mutation/main.ts',
  'tools/tidy.ts',
]

export const REACHES: Reaches = { reached: REACHED, namesNoFolders: NAMES_NO_FOLDERS }
