import { start } from "./api.js";

start(async () => {});
