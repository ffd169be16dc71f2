/** esbuild loads an icon as its text. */
declare module "*.svg" {
  const svg: string;
  export default svg;
}
